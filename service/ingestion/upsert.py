"""A batch of nodes as a caller gives it: embedded where it must be, stored whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.ingestion import find_stale_nodes
from service.db.nodes import upsert_nodes
from service.embedding import Embedder, text_to_embed
from service.errors import Conflict
from service.types import NodeDraft, UpsertedNode, Vector

MOST_TURNS = 5


class _Overtaken(Exception):
    """Another writer changed a node that needed no embedding when it was looked at."""


def embed_and_upsert(
    engine: Engine,
    tenant_id: str,
    *,
    nodes: Sequence[NodeDraft],
    embedder: Embedder,
    dataset_name: str = "default",
) -> list[UpsertedNode]:
    """Store a batch, embedding what is searchable and new or changed."""
    open_nodes = [node for node in nodes if node.searchable]
    vectors: dict[str, Vector] = {}

    def find_stale(connection: Connection) -> set[str]:
        return find_stale_nodes(
            connection,
            tenant_id,
            nodes=[node for node in open_nodes if node.external_id not in vectors],
            embedder_version=embedder.version,
            dataset_name=dataset_name,
        )

    for _ in range(MOST_TURNS):
        with tenant_transaction(engine, [tenant_id]) as connection:
            stale = find_stale(connection)
        vectors |= _embed([node for node in open_nodes if node.external_id in stale], embedder)
        try:
            with tenant_transaction(engine, [tenant_id]) as connection:
                done = upsert_nodes(
                    connection,
                    tenant_id,
                    nodes=nodes,
                    embeddings=[vectors.get(node.external_id) for node in nodes],
                    dataset_name=dataset_name,
                    embedder_version=embedder.version if vectors else None,
                )
                if find_stale(connection):
                    raise _Overtaken
        except _Overtaken:
            continue
        return done
    raise Conflict("Others keep changing nodes of this batch.", hint="Send it again.")


def _embed(nodes: Sequence[NodeDraft], embedder: Embedder) -> dict[str, Vector]:
    if not nodes:
        return {}
    texts = [text_to_embed(n.title, n.summary, n.content, n.header) for n in nodes]
    matrix = embedder.embed_documents(texts)
    return {node.external_id: row for node, row in zip(nodes, matrix, strict=True)}
