"""Migrations: up, down, again, two at once, printed, and on servers that are not as they should."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from service.db import migrate as migrate_module
from service.db.ann_index import HnswOptions, build_ann_index
from service.db.engine import open_admin_engine, open_engine, owner_transaction, tenant_transaction
from service.db.migrate import (
    Migration,
    current_revision,
    downgrade,
    ensure_service_login,
    head_revision,
    migrate,
    print_migration,
)
from service.db.nodes import upsert_nodes
from service.errors import DatabaseUnavailable, DatabaseUnsuitable, SettingsError
from service.types import NodeDraft
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase, LiveServer, run_server
from tests.migrations.schema_dump import CHECKED_IN, DEFAULT_DIM, dump_schema

LEFTOVERS = """
    select 'relation ' || c.relname from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = 'contextforge' or pg_get_userbyid(c.relowner) = 'contextforge_owner'
    union all
    select 'function ' || p.proname from pg_proc as p
    where pg_get_userbyid(p.proowner) = 'contextforge_owner'
    union all
    select 'type ' || t.typname from pg_type as t
    where pg_get_userbyid(t.typowner) = 'contextforge_owner' and t.typrelid = 0
        and t.typelem = 0
    order by 1
"""


@pytest.fixture
def empty(make_database: MakeDatabase) -> LiveDatabase:
    """A database nobody has migrated."""
    return make_database(embedding_dim=None)


def list_leftovers(database: LiveDatabase) -> list[str]:
    with psycopg.connect(database.admin_url) as connection:
        return [name for (name,) in connection.execute(LEFTOVERS)]


def read_ann_index(database: LiveDatabase) -> str:
    statement = "select pg_get_indexdef('contextforge.idx_knowledge_nodes_embedding'::regclass)"
    with psycopg.connect(database.admin_url) as connection:
        return str(connection.execute(statement).fetchone())


def test_an_index_by_inner_product_becomes_one_by_cosine_on_the_way_down(database: LiveDatabase):
    build_ann_index(database.admin, HnswOptions(m=8, ef_construction=40))
    assert "halfvec_ip_ops" in read_ann_index(database)
    downgrade(database.admin, "0014")
    assert "halfvec_cosine_ops" in read_ann_index(database)
    assert "m='8', ef_construction='40'" in read_ann_index(database).replace("\\", "")


def test_a_fresh_upgrade_equals_the_checked_in_dump(
    servers: Callable[[int], LiveServer],
) -> None:
    with servers(18).open_database(embedding_dim=DEFAULT_DIM) as database:
        fresh = dump_schema(database, functions=False)

    assert fresh == CHECKED_IN.read_text(), (
        "The schema changed. If it is meant: python -m tests.migrations.schema_dump"
    )


def test_migrating_again_changes_nothing(empty: LiveDatabase) -> None:
    first = migrate(empty.admin, embedding_dim=8)
    before = dump_schema(empty)
    second = migrate(empty.admin, embedding_dim=8)

    assert first == Migration(None, head_revision(), first.functions)
    assert second == Migration(head_revision(), head_revision(), first.functions)
    assert dump_schema(empty) == before


def test_down_to_nothing_and_up_again_is_the_same_schema(database: LiveDatabase) -> None:
    before = dump_schema(database)

    downgrade(database.admin, "base")

    assert list_leftovers(database) == ["relation schema_version", "relation schema_version_pkc"]
    migrate(database.admin, embedding_dim=8)
    assert dump_schema(database) == before


def test_every_revision_can_be_taken_back_alone_and_never_opens_a_table(
    database: LiveDatabase,
) -> None:
    seen = []
    while True:
        with owner_transaction(database.admin) as connection:
            seen.append(current_revision(connection))
            unguarded = connection.exec_driver_sql("""
                select c.oid::regclass::text, r.rolname
                from pg_class as c, pg_roles as r
                where c.relkind = 'r' and not c.relrowsecurity
                    and c.relnamespace in ('public'::regnamespace, 'contextforge'::regnamespace)
                    and r.rolname in ('contextforge_api', 'contextforge_analyst')
                    and has_table_privilege(r.oid, c.oid, 'select, insert, update, delete')
            """)
            assert unguarded.all() == []
        if seen[-1] is None:
            break
        downgrade(database.admin, "-1")

    assert seen[0] == head_revision()
    assert len(seen) == len(set(seen)) >= 5


def test_two_migrations_at_once_both_succeed(empty: LiveDatabase) -> None:
    def run(_: int) -> Migration:
        engine = open_admin_engine(empty.admin_url)
        try:
            return migrate(engine, embedding_dim=8)
        finally:
            engine.dispose()

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(run, range(2)))

    assert {m.before for m in done} == {None, head_revision()}
    assert {m.after for m in done} == {head_revision()}


def test_two_databases_of_one_new_server_can_be_migrated_at_once() -> None:
    with run_server(18) as server:
        names = ["one", "two"]
        for name in names:
            server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))

        def run(name: str) -> Migration:
            engine = open_admin_engine(server.server.admin_url(name))
            try:
                return migrate(engine, embedding_dim=8)
            finally:
                engine.dispose()

        with ThreadPoolExecutor(2) as pool:
            assert {m.after for m in pool.map(run, names)} == {head_revision()}


def test_another_embedding_dim_is_refused_with_the_way_out(database: LiveDatabase) -> None:
    before = dump_schema(database)

    with pytest.raises(SettingsError, match=r"EMBEDDING_DIM is 16, .* made with 8") as refusal:
        migrate(database.admin, embedding_dim=16)
    assert "Set EMBEDDING_DIM=8, or migrate an empty database" in str(refusal.value)
    assert dump_schema(database) == before


def test_the_printed_migration_makes_the_same_schema(
    database: LiveDatabase, empty: LiveDatabase
) -> None:
    psql = [str(empty.server.bin_dir / "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", empty.admin_url]
    ran = subprocess.run(
        psql, input=print_migration(8), capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert dump_schema(empty) == dump_schema(database)
    assert migrate(empty.admin, embedding_dim=8).before == head_revision()


def test_a_migration_that_waits_too_long_for_another_gives_up(empty: LiveDatabase) -> None:
    with psycopg.connect(empty.admin_url) as other:
        other.execute("select pg_advisory_xact_lock(%s)", (migrate_module._LOCK,))
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable, match="lock timeout"):
            migrate(empty.admin, embedding_dim=8, lock_timeout="100ms")
        assert time.monotonic() - started < 5
        other.rollback()
    assert list_leftovers(empty) == []
    assert migrate(empty.admin, embedding_dim=8).after == head_revision()


def test_a_login_that_may_only_create_roles_can_migrate_its_own_database(pg_version: int) -> None:
    with run_server(pg_version) as server:
        server.execute(sql.SQL("create role hoster login createrole"))
        server.execute(sql.SQL("create database hosted owner hoster"))
        with psycopg.connect(server.server.admin_url("hosted"), autocommit=True) as connection:
            connection.execute("create extension vector")
        admin = open_admin_engine(server.server.url("hoster", "hosted"))
        service_url = server.server.url("app", "hosted")
        try:
            assert migrate(admin, embedding_dim=8).after == head_revision()
            assert migrate(admin, embedding_dim=8).before == head_revision()
            ensure_service_login(admin, service_url)
            with owner_transaction(admin) as connection:
                connection.exec_driver_sql("select create_tenant('acme')")
        finally:
            admin.dispose()
        service = open_engine(service_url)
        try:
            with tenant_transaction(service, ["acme"]) as connection:
                made = upsert_nodes(connection, "acme", nodes=[NodeDraft("a", "article")])
        finally:
            service.dispose()
        assert [node.action for node in made] == ["added"]


def test_a_server_without_pgvector_is_refused_in_one_sentence(
    servers: Callable[[int], LiveServer],
) -> None:
    # PostgreSQL 18 can be told where extensions are: here, in a place that has none.
    with servers(18).open_database(embedding_dim=None) as database:
        servers(18).execute(
            sql.SQL("alter database {} set extension_control_path = {}").format(
                sql.Identifier(database.name), sql.Literal("/nowhere")
            )
        )
        with pytest.raises(DatabaseUnsuitable, match="has no pgvector") as refusal:
            migrate(database.admin, embedding_dim=8)
    assert "Install the pgvector package" in str(refusal.value)


def test_pgvector_in_another_schema_is_refused_with_the_way_out(empty: LiveDatabase) -> None:
    with psycopg.connect(empty.admin_url) as connection:
        connection.execute("create schema elsewhere; create extension vector schema elsewhere")
    with pytest.raises(DatabaseUnsuitable, match="alter extension vector set schema public"):
        migrate(empty.admin, embedding_dim=8)

    with psycopg.connect(empty.admin_url) as connection:
        connection.execute("alter extension vector set schema public")
    assert migrate(empty.admin, embedding_dim=8).after == head_revision()


def test_versions_that_are_too_old_are_refused_by_name(
    empty: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No older server is at hand, so the least that is wanted goes up.
    with monkeypatch.context() as patch:
        patch.setattr(migrate_module, "LEAST_VECTOR", (99, 0))
        with pytest.raises(DatabaseUnsuitable, match=r"pgvector here is 0\.\d+\.\d+"):
            migrate(empty.admin, embedding_dim=8)
    with monkeypatch.context() as patch:
        patch.setattr(migrate_module, "LEAST_SERVER", 990000)
        with pytest.raises(DatabaseUnsuitable, match=f"This is PostgreSQL {empty.version}"):
            migrate(empty.admin, embedding_dim=8)


def test_a_server_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    engine = open_admin_engine(f"postgresql://postgres@/postgres?host={tmp_path}")

    with pytest.raises(DatabaseUnavailable) as failure:
        migrate(engine, embedding_dim=8)
    assert "DATABASE_URL" in str(failure.value)
    assert "\n" not in str(failure.value)
