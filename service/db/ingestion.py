"""What ingestion asks of the database: one Python function per SQL function, of the same name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.db.nodes import encode_links, encode_nodes
from service.types import LinkDraft, NodeDraft, Reference, UpsertedLink


def find_stale_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    nodes: Sequence[NodeDraft],
    embedder_version: str,
    dataset_name: str = "default",
) -> set[str]:
    """Return the external ids of those nodes that need an embedding."""
    rows = connection.exec_driver_sql(
        "select external_id from public.find_stale_nodes(%s, %t::jsonb, %s, %s)",
        (tenant_id, encode_nodes(nodes), embedder_version, dataset_name),
    )
    return set(rows.scalars())


def lock_document(
    connection: Connection, tenant_id: str, *, external_id: str, dataset_name: str = "default"
) -> None:
    """Wait until no other transaction writes this document; hold it until this one ends."""
    connection.exec_driver_sql(
        "select pg_advisory_xact_lock(hashtextextended(%s, 1))",
        ("\n".join((tenant_id, dataset_name, external_id)),),
    )


def replace_references(
    connection: Connection,
    tenant_id: str,
    *,
    references: Sequence[Reference],
    dataset_name: str = "default",
) -> int:
    """Store what documents refer to, in place of what they referred to before."""
    payload = [
        {"source": each.source, "kind": each.kind, "target": each.target} for each in references
    ]
    new = connection.exec_driver_sql(
        "select public.replace_references(%s, %s, %s)", (tenant_id, Jsonb(payload), dataset_name)
    ).scalar_one()
    return int(new)


def replace_links(
    connection: Connection,
    tenant_id: str,
    *,
    sources: Sequence[str],
    links: Sequence[LinkDraft],
    replaced_type: str,
    dataset_name: str = "default",
) -> list[UpsertedLink]:
    """Store the links of one type that these nodes have, in place of those they had before."""
    rows = connection.exec_driver_sql(
        "select source_id, target_id, link_type, action"
        " from public.replace_links(%s, %s, %t::jsonb, %s, %s)",
        (tenant_id, list(sources), encode_links(links), replaced_type, dataset_name),
    )
    return [UpsertedLink(*row) for row in rows]


def link_references(
    connection: Connection, tenant_id: str, *, dataset_name: str = "default"
) -> int:
    """Make links of the references whose targets are there by now; return how many are new."""
    new = connection.exec_driver_sql(
        "select public.link_references(%s, %s)", (tenant_id, dataset_name)
    ).scalar_one()
    return int(new)


def list_node_ids(
    connection: Connection, tenant_id: str, *, dataset_name: str, node_types: Collection[str]
) -> list[tuple[str, str | None]]:
    """Return the external ids of a dataset's nodes of these types, each with its parent's."""
    rows = connection.exec_driver_sql(
        "select node.external_id, parent.external_id from public.knowledge_nodes as node"
        " left join public.knowledge_nodes as parent"
        " on parent.tenant_id = node.tenant_id and parent.node_id = node.parent_id"
        " where node.tenant_id = %s and node.dataset_name = %s and node.node_type = any(%s)"
        " order by node.external_id",
        (tenant_id, dataset_name, list(node_types)),
    )
    return [(name, parent) for name, parent in rows]


def list_child_ids(
    connection: Connection, tenant_id: str, *, dataset_name: str, parents: Sequence[str]
) -> list[str]:
    """Return the external ids of what stands below these nodes of a dataset."""
    rows = connection.exec_driver_sql(
        "select child.external_id from public.knowledge_nodes as parent"
        " join public.knowledge_nodes as child"
        " on child.tenant_id = parent.tenant_id and child.parent_id = parent.node_id"
        " where parent.tenant_id = %s and parent.dataset_name = %s"
        " and parent.external_id = any(%s) order by child.external_id",
        (tenant_id, dataset_name, list(parents)),
    )
    return list(rows.scalars())
