"""Fixtures for the tests of ingestion: run one, ask what is stored, what is found and linked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from service.db.engine import owner_transaction, tenant_transaction
from service.db.search import bm25_search_nodes, vector_search_nodes
from service.ingestion.ingest import Ingestion, IngestReport
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase, LiveServer
from tests.sql.adapting import store_both_tenants
from tests.sql.ingesting import FILES, Ask, Find, Ingest, Links, Source, read_groups, write_files
from tests.tiny_embedder import TinyEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "docs", FILES)


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> str:
    return make_tenant()


@pytest.fixture
def ingest(tenant: str, database: LiveDatabase) -> Ingest:
    """ingest(folder or groups, ...): run an ingestion; the tenant is acme unless named."""

    def run(
        source: Source,
        *,
        tenant: str = tenant,
        embedder: TinyEmbedder | None = None,
        prune: bool = False,
        dry_run: bool = False,
        dataset: str = "default",
    ) -> IngestReport:
        groups = read_groups(source) if isinstance(source, Path) else source
        return Ingestion(
            database.engine,
            tenant,
            embedder or TinyEmbedder(),
            dataset_name=dataset,
            dry_run=dry_run,
        ).run(groups, prune=prune)

    return run


@pytest.fixture
def ask(database: LiveDatabase) -> Ask:
    """ask(statement, *arguments): rows as the owner sees them."""

    def run(statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        with owner_transaction(database.admin) as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement, arguments)]

    return run


@pytest.fixture
def find(database: LiveDatabase, ask: Ask) -> Find:
    """find(words, tenant): ids of what keywords find, then of what is nearest in meaning."""

    def run(words: str, tenant: str = "acme") -> list[str]:
        names: dict[int, str] = dict(ask("select node_id, external_id from knowledge_nodes"))
        with tenant_transaction(database.engine, [tenant]) as connection:
            by_words = bm25_search_nodes(connection, [tenant], query_text=words)
            near = vector_search_nodes(
                connection, [tenant], query_embedding=TinyEmbedder().embed_query(words), top_k=100
            )
        return [names[hit.node_id] for hit in (*by_words, *near)]

    return run


@pytest.fixture
def links(ask: Ask) -> Links:
    """links(): all hyperlinks as pairs of ids."""
    return lambda: {
        (source, target)
        for source, target in ask("""
            select s.external_id, t.external_id
            from node_links as l
            join knowledge_nodes as s on s.tenant_id = l.tenant_id and s.node_id = l.source_id
            join knowledge_nodes as t on t.tenant_id = l.tenant_id and t.node_id = l.target_id
            where l.link_type = 'hyperlink'
        """)
    }


@pytest.fixture(scope="session")
def sales_databases(
    servers: Callable[[int], LiveServer],
) -> Iterator[Callable[[int], LiveDatabase]]:
    """sales_databases(version): two tenants with a dataset sales_db each; only to be read."""
    filled: dict[int, LiveDatabase] = {}
    with ExitStack() as stack:

        def find(version: int) -> LiveDatabase:
            if version not in filled:
                database = stack.enter_context(servers(version).open_database())
                store_both_tenants(database)
                filled[version] = database
            return filled[version]

        yield find


@pytest.fixture
def sales(sales_databases: Callable[[int], LiveDatabase], pg_version: int) -> LiveDatabase:
    """A database where two tenants have a dataset of the same name; it is shared: only read it."""
    return sales_databases(pg_version)
