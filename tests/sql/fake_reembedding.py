"""What the tests of re-embedding share: an embedder without a model, and looks at a tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import pytest
from sqlalchemy import Connection

from service.db.engine import owner_transaction
from service.db.nodes import upsert_nodes
from service.db.reembedding import list_unstaged_nodes, stage_embeddings
from service.db.search import vector_search_nodes
from service.embedding import FloatMatrix, FloatVector, OnProgress
from service.ingestion.reembed import Reembedding, ReembedReport
from service.types import NodeDraft
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent
from tests.sql.search_corpus import searching

Hook = Callable[[Sequence[str]], None]


@dataclass
class FakeEmbedder:
    """A vector by the hash of text and name; remembers what it embedded, and can be disturbed."""

    name: str
    dimension: int
    before: Hook | None = None
    embedded: list[str] = field(default_factory=list)

    @property
    def version(self) -> str:
        return f"{self.name}@1/{self.dimension}"

    def embed_query(self, text: str) -> FloatVector:
        seed = crc32(f"{self.name} {text}".encode())
        values = np.random.default_rng(seed).normal(size=self.dimension)
        return (values / np.linalg.norm(values)).astype(np.float32)

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        if self.before is not None:
            self.before(texts)
        self.embedded += texts
        return self.embed_queries(texts)


def run_reembedding(database: LiveDatabase, tenant: str, embedder: FakeEmbedder) -> ReembedReport:
    return Reembedding(database.engine, tenant, embedder).run()


def stage(connection: Connection, tenant: str, embedder: FakeEmbedder, max_rows: int = 512) -> None:
    """Stage as many nodes by hand."""
    version = embedder.version
    nodes = list_unstaged_nodes(connection, tenant, embedder_version=version, max_rows=max_rows)
    vectors = list(embedder.embed_queries([node.content for node in nodes]))
    stage_embeddings(connection, tenant, nodes=nodes, embeddings=vectors, embedder_version=version)


def find(
    database: LiveDatabase, tenant: str, embedder: FakeEmbedder, text: str
) -> list[tuple[int, float]]:
    """What a search by the text's own vector finds."""
    with searching(database, tenant) as connection:
        found = vector_search_nodes(
            connection, [tenant], query_embedding=embedder.embed_query(text)
        )
    return [(node.node_id, node.score) for node in found]


def edit(database: LiveDatabase, tenant: str, name: str, text: str, embedder: FakeEmbedder) -> None:
    with searching(database, tenant) as connection:
        upsert_nodes(
            connection,
            tenant,
            nodes=[NodeDraft(name, "article", content=text)],
            embeddings=[embedder.embed_query(text)],
            embedder_version=embedder.version,
        )


def count(database: LiveDatabase, statement: str, tenant: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(connection.exec_driver_sql(statement, (tenant,)).scalar_one())


def count_staged(database: LiveDatabase, tenant: str) -> int:
    return count(
        database, "select count(*) from contextforge.next_embeddings where tenant_id = %s", tenant
    )


def read_profile(database: LiveDatabase, tenant: str) -> tuple[str | None, int | None]:
    with owner_transaction(database.admin) as connection:
        version, dimension = connection.exec_driver_sql(
            "select embedder_version, embedding_dim from contextforge.tenant_profiles"
            " where tenant_id = %s",
            (tenant,),
        ).one()
    return version, dimension


def assert_embedded(database: LiveDatabase, tenant: str, embedder: FakeEmbedder) -> None:
    """Profile, nodes and search rows all have this embedder's vectors of the present texts."""
    assert read_profile(database, tenant) == (embedder.version, embedder.dimension)
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql(
            "select n.content, n.embedder_version, n.embedding::real[],"
            " s.embedding::vector::real[], s.in_ann"
            " from knowledge_nodes as n"
            " join contextforge.search_nodes as s using (tenant_id, node_id)"
            " where n.tenant_id = %s",
            (tenant,),
        ).all()
    assert rows
    for content, version, stored, searched, in_ann in rows:
        expected = embedder.embed_query(content)
        assert (version, in_ann) == (embedder.version, False)
        assert stored == pytest.approx([*expected, *[0] * (8 - embedder.dimension)], abs=1e-6)
        assert searched == pytest.approx(expected, abs=1e-3)
    assert count_staged(database, tenant) == 0
    assert_consistent(database, tenant)
