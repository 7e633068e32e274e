"""hybrid_search_nodes on a tenant of its own, under row-level security, as the service calls it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from benchmarks.peers.asked import AskedSet, Vectors
from benchmarks.stand import BATCH, Stand, create_tenant, index_vectors, vacuum
from service.db.engine import tenant_transaction
from service.db.maintenance import merge_segments
from service.db.nodes import upsert_nodes
from service.db.search import hybrid_search_nodes
from service.types import Fusion, NodeDraft

# Names the length of the vectors: they are stored and compared as short as they are.
EMBEDDER = "all-MiniLM-L6-v2@given/384"


@dataclass(frozen=True, slots=True)
class Way:
    """How to search: a leg of weight 0 does not run."""

    fusion: Fusion = "rrf"
    bm25_weight: float = 0.4
    vector_weight: float = 0.6


class NodeSearcher:
    """Searches a tenant on an open transaction in one way."""

    def __init__(
        self, connection: Connection, tenant: str, *, way: Way, names: dict[int, str]
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._way = way
        self._names = names

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        hits = hybrid_search_nodes(
            self._connection,
            [self._tenant],
            query_text=text,
            query_embedding=vector,
            top_k=top_k,
            fusion=self._way.fusion,
            bm25_weight=self._way.bm25_weight,
            vector_weight=self._way.vector_weight,
        )
        return [self._names[hit.node_id] for hit in hits]


class TransactionSearcher:
    """The same with a transaction of its own for every question, as a request has."""

    def __init__(self, engine: Engine, tenant: str, names: dict[int, str]) -> None:
        self._engine = engine
        self._tenant = tenant
        self._names = names

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        with tenant_transaction(self._engine, [self._tenant]) as connection:
            searcher = NodeSearcher(connection, self._tenant, way=Way(), names=self._names)
            return searcher.search(text, vector, top_k)


def load_tenant(stand: Stand, tenant: str, asked: AskedSet) -> dict[int, str]:
    """Store the documents and leave the tenant as upkeep does; names by node id."""
    create_tenant(stand, tenant)
    names: dict[int, str] = {}
    for start in range(0, len(asked.names), BATCH):
        part = slice(start, start + BATCH)
        with tenant_transaction(stand.engine, [tenant]) as connection:
            stored = upsert_nodes(
                connection,
                tenant,
                nodes=_draft(asked, part),
                embeddings=list(asked.vectors[part]),
                embedder_version=EMBEDDER,
            )
        names |= {node.node_id: node.external_id for node in stored}
    with tenant_transaction(stand.engine, [tenant]) as connection:
        merge_segments(connection, tenant, everything=True)
    index_vectors(stand, tenant)
    vacuum(stand)
    return names


@contextmanager
def open_ours(
    stand: Stand, tenant: str, *, way: Way, names: dict[int, str]
) -> Iterator[NodeSearcher]:
    """Search a loaded tenant within one transaction."""
    with tenant_transaction(stand.engine, [tenant]) as connection:
        yield NodeSearcher(connection, tenant, way=way, names=names)


def _draft(asked: AskedSet, part: slice) -> list[NodeDraft]:
    rows = zip(asked.names[part], asked.titles[part], asked.bodies[part], strict=True)
    return [NodeDraft(name, "article", title=title, content=body) for name, title, body in rows]
