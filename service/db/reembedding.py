"""Changing a tenant's embedder: one Python function per SQL function, of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from service.types import Vector


@dataclass(frozen=True, slots=True)
class UnstagedNode:
    """A node whose present text has no embedding of the next embedder; the hash is that text's."""

    node_id: int
    title: str
    summary: str
    header: str | None
    content: str
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class TenantEmbedder:
    """The embedder a tenant is searched by; None before the first write that names one."""

    version: str | None
    dimension: int | None


def list_unstaged_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    embedder_version: str,
    max_rows: int = 512,
    after_node_id: int = 0,
) -> list[UnstagedNode]:
    """Return nodes that are yet to be embedded, in order of their ids."""
    rows = connection.exec_driver_sql(
        "select node_id, title, summary, header, content, content_hash"
        " from public.list_unstaged_nodes(%s, %s, %s, %s)",
        (tenant_id, embedder_version, max_rows, after_node_id),
    )
    return [UnstagedNode(*row) for row in rows]


def stage_embeddings(
    connection: Connection,
    tenant_id: str,
    *,
    nodes: Sequence[UnstagedNode],
    embeddings: Sequence[Vector],
    embedder_version: str,
) -> int:
    """Keep embeddings beside those in use; return how many, for nodes may be gone by now."""
    staged = connection.exec_driver_sql(
        "select public.stage_embeddings(%s, %s::integer[], %b::bytea[], %b::public.vector[], %s)",
        (
            tenant_id,
            [node.node_id for node in nodes],
            [node.content_hash for node in nodes],
            list(embeddings),
            embedder_version,
        ),
    ).scalar_one()
    return int(staged)


def switch_embedder(connection: Connection, tenant_id: str, *, embedder_version: str) -> int:
    """Search by the staged embeddings from now on; return how many nodes have a new one."""
    switched = connection.exec_driver_sql(
        "select public.switch_embedder(%s, %s)", (tenant_id, embedder_version)
    ).scalar_one()
    return int(switched)


def drop_staged_embeddings(connection: Connection, tenant_id: str) -> int:
    """Drop what was staged; return how many there were."""
    dropped = connection.exec_driver_sql(
        "select public.drop_staged_embeddings(%s)", (tenant_id,)
    ).scalar_one()
    return int(dropped)


def lock_writing(connection: Connection, tenant_id: str) -> None:
    """Let every other writer of the tenant wait until the end of this transaction."""
    connection.exec_driver_sql("select contextforge.lock_writing(%s, 3)", (tenant_id,))


def read_embedder(connection: Connection, tenant_id: str) -> TenantEmbedder:
    """Return the tenant's embedder, refusing a tenant the caller may not see."""
    connection.exec_driver_sql("select contextforge.require_tenants(array[%s])", (tenant_id,))
    row = connection.exec_driver_sql(
        "select embedder_version, embedding_dim from contextforge.tenant_profiles"
        " where tenant_id = %s",
        (tenant_id,),
    ).one()
    return TenantEmbedder(*row)


def estimate_unstaged(connection: Connection, tenant_id: str, *, embedder_version: str) -> int:
    """Return about how many nodes are yet to be embedded, without reading their texts."""
    count = connection.exec_driver_sql(
        "select count(*) from public.knowledge_nodes as n"
        " left join contextforge.next_embeddings as x"
        " on x.tenant_id = n.tenant_id and x.node_id = n.node_id and x.embedder_version = %s"
        " where n.tenant_id = %s and n.searchable_text is not null and x.node_id is null"
        " and (n.embedding is null or n.embedder_version is distinct from %s)",
        (embedder_version, tenant_id, embedder_version),
    ).scalar_one()
    return int(count)
