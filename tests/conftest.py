"""Fixtures that every test may use: servers, databases, tenants, logins, nodes.

Database tests run on PostgreSQL 18; those of tests/sql and tests/migrations on 16 too, unless they
are marked slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest
from psycopg import sql

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_nodes
from service.types import NodeDraft, UpsertedNode, Vector
from tests.live_database import SMALL_DIM, LiveDatabase, LiveServer, run_server

NEWEST = 18
VERSIONS = (18, 16)
ON_EVERY_VERSION = {"sql", "migrations"}


class MakeDatabase(Protocol):
    def __call__(self, *, embedding_dim: int | None = SMALL_DIM) -> LiveDatabase: ...


class MakeTenant(Protocol):
    def __call__(self, name: str = "acme", lang: str = "en") -> str: ...


class MakeLogin(Protocol):
    def __call__(
        self,
        name: str = "analyst",
        *,
        granted: Sequence[str] = (),
        member_of: Sequence[str] = ("contextforge_analyst",),
    ) -> str: ...


class Upsert(Protocol):
    def __call__(
        self,
        tenant: str,
        nodes: Sequence[NodeDraft],
        *,
        embeddings: Sequence[Vector | None] | None = None,
        dataset_name: str = "default",
        embedder_version: str | None = None,
    ) -> list[UpsertedNode]: ...


class MakeNode(Protocol):
    def __call__(
        self, external_id: str = "a", content: str = "", **fields: object
    ) -> NodeDraft: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = Path(metafunc.module.__file__ or "").parent.name
    slow = metafunc.definition.get_closest_marker("slow") is not None
    if "pg_version" in metafunc.fixturenames and folder in ON_EVERY_VERSION and not slow:
        metafunc.parametrize("pg_version", VERSIONS, indirect=True, ids=lambda v: f"pg{v}")


@pytest.fixture
def pg_version(request: pytest.FixtureRequest) -> int:
    """The PostgreSQL version of this test."""
    return int(getattr(request, "param", NEWEST))


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[int], LiveServer]]:
    """servers(version): the worker's server of that version, started when first asked for."""
    running: dict[int, LiveServer] = {}
    with ExitStack() as stack:

        def find_server(version: int) -> LiveServer:
            if version not in running:
                running[version] = stack.enter_context(run_server(version))
            return running[version]

        yield find_server


@pytest.fixture
def server(servers: Callable[[int], LiveServer], pg_version: int) -> LiveServer:
    """A running server of this test's version."""
    return servers(pg_version)


@pytest.fixture
def make_database(server: LiveServer) -> Iterator[MakeDatabase]:
    """make_database(embedding_dim=8): a fresh migrated database; None leaves it empty."""
    with ExitStack() as stack:
        yield lambda *, embedding_dim=SMALL_DIM: stack.enter_context(
            server.open_database(embedding_dim=embedding_dim)
        )


@pytest.fixture
def database(make_database: MakeDatabase) -> LiveDatabase:
    """A fresh migrated database of 8 dimensions."""
    return make_database()


@pytest.fixture
def make_tenant(database: LiveDatabase) -> MakeTenant:
    """make_tenant(name, lang): create a tenant and return its id."""

    def create(name: str = "acme", lang: str = "en") -> str:
        with owner_transaction(database.admin) as connection:
            connection.exec_driver_sql("select create_tenant(%s, null, %s)", (name, lang))
        return name

    return create


_LOGIN_NUMBERS = count()


@pytest.fixture
def make_login(database: LiveDatabase, server: LiveServer) -> Iterator[MakeLogin]:
    """make_login(name, granted=..., member_of=...): a login role; roles are the whole server's."""
    made: list[str] = []

    def create(
        name: str = "analyst",
        *,
        granted: Sequence[str] = (),
        member_of: Sequence[str] = ("contextforge_analyst",),
    ) -> str:
        login = f"{name}_{next(_LOGIN_NUMBERS)}"
        server.execute(sql.SQL("create role {} login").format(sql.Identifier(login)))
        made.append(login)
        for role in member_of:
            server.execute(
                sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(login))
            )
        with owner_transaction(database.admin) as connection:
            for tenant in granted:
                connection.exec_driver_sql(
                    "insert into contextforge.analyst_grants (role_name, tenant_id)"
                    " values (%s, %s)",
                    (login, tenant),
                )
        return login

    yield create
    with database.admin.begin() as connection:
        for login in made:
            connection.exec_driver_sql(f'drop owned by "{login}"')
            connection.exec_driver_sql(f'drop role "{login}"')


@pytest.fixture
def make_node() -> MakeNode:
    """make_node(external_id, content, **fields): a draft of an article unless told otherwise."""

    def create(external_id: str = "a", content: str = "", **fields: object) -> NodeDraft:
        given = {"node_type": "article", "content": content, **fields}
        return NodeDraft(external_id, **given)  # type: ignore[arg-type]

    return create


@pytest.fixture
def upsert(database: LiveDatabase) -> Upsert:
    """upsert(tenant, nodes, ...): upsert_nodes by the service in a transaction of its own."""

    def run(
        tenant: str,
        nodes: Sequence[NodeDraft],
        *,
        embeddings: Sequence[Vector | None] | None = None,
        dataset_name: str = "default",
        embedder_version: str | None = None,
    ) -> list[UpsertedNode]:
        with tenant_transaction(database.engine, [tenant]) as connection:
            return upsert_nodes(
                connection,
                tenant,
                nodes=nodes,
                embeddings=embeddings,
                dataset_name=dataset_name,
                embedder_version=embedder_version,
            )

    return run
