"""The doctor finds what is broken, names it, and finds nothing in a sound database."""

from __future__ import annotations

import numpy as np
import pytest

from service.db.database import Database
from service.db.doctor import Check, examine
from service.db.engine import tenant_transaction
from service.db.nodes import delete_nodes
from service.settings import Settings
from tests.conftest import MakeDatabase, MakeNode, MakeTenant, Upsert
from tests.live_database import SMALL_DIM, LiveDatabase


def diagnose(database: LiveDatabase, **changes: object) -> dict[str, Check]:
    given = {"database_url": database.service_url, "embedding_dim": SMALL_DIM} | changes
    settings = Settings.model_validate(given)
    checks = examine(Database(database.admin, database.admin_url), settings)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def alter(database: LiveDatabase, statement: str) -> None:
    with database.admin.begin() as connection:
        connection.exec_driver_sql(statement)


@pytest.fixture
def filled(
    database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
) -> LiveDatabase:
    """Two tenants, each with a text changed, a node deleted, an article with sections."""
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        nodes = [make_node(str(n), f"common words and number{n}") for n in range(5)]
        vectors = list(np.eye(SMALL_DIM, dtype=np.float32)[:5])
        upsert(tenant, nodes, embeddings=vectors)
        upsert(tenant, [make_node("1", "another text")])
        upsert(tenant, [make_node("article", "raw", searchable=False)])
        upsert(tenant, [make_node("s", "a section", node_type="section", parent="article")])
        with tenant_transaction(database.engine, [tenant]) as connection:
            delete_nodes(connection, tenant, external_ids=["2"])
    return database


def test_a_sound_database_has_nothing_to_complain_of(filled: LiveDatabase):
    checks = diagnose(filled)
    troubled = {name for name, check in checks.items() if check.status != "ok"}
    # PostgreSQL 16 of the wheel may carry an older pgvector, which is worth its warning.
    assert troubled <= {"versions"}
    assert checks["versions"].status != "failed"
    assert len(checks) > 12


@pytest.mark.parametrize(
    ("statement", "name", "named"),
    [
        ("alter table node_links no force row level security", "row-level security", "node_links"),
        ("alter table node_ranks disable row level security", "row-level security", "node_ranks"),
        ("alter table node_ranks owner to postgres", "row-level security", "node_ranks"),
        ("drop policy api_tenants on node_links", "policies", "node_links"),
        ("drop policy owner_all on contextforge.postings", "policies", "postings"),
        ("create policy extra on node_links using (true)", "policies", "extra"),
        ("alter policy api_tenants on node_links using (true)", "policies", "api_tenants on node_"),
        ("alter policy analyst_tenants on node_ranks to public", "policies", "analyst_tenants on"),
        ("grant create on schema public to public", "schema public", "Anyone"),
        ("update contextforge.installation set embedding_dim = 9", "embedding dimension", "9"),
        ("update contextforge.schema_version set version_num = '1'", "migrations", "at 1"),
    ],
)
def test_a_loosened_database_is_found_and_the_remedy_given(
    database: LiveDatabase, statement: str, name: str, named: str
):
    assert diagnose(database)[name].status == "ok"
    alter(database, statement)
    check = diagnose(database)[name]
    assert check.status == "failed"
    assert named in check.detail
    assert check.remedy


@pytest.mark.parametrize(
    ("statement", "name", "named"),
    [
        (
            "update contextforge.segments set documents = documents + 1 where tenant_id = 'acme'",
            "statistics",
            "acme: documents",
        ),
        (
            "update contextforge.segments set total_length = total_length - 1"
            " where tenant_id = 'acme'",
            "statistics",
            "acme: total length",
        ),
        (
            "update contextforge.postings set documents = documents + 1"
            " where tenant_id = 'acme' and lexeme = 'common'",
            "statistics",
            'acme: document frequency of "common" and 0 more',
        ),
        (
            "update contextforge.segments set live_postings = 0 where tenant_id = 'acme'",
            "statistics",
            "acme: postings said to be live 0, recounted",
        ),
        (
            "delete from contextforge.postings where tenant_id = 'acme' and lexeme = 'common'",
            "statistics",
            "acme: live postings",
        ),
        (
            "delete from contextforge.search_nodes where tenant_id = 'acme'",
            "nodes",
            "acme: nodes in search",
        ),
        (
            "update contextforge.search_nodes set article_id = 0 where tenant_id = 'acme'",
            "nodes",
            "acme: nodes in search",
        ),
        (
            "update knowledge_nodes set searchable_text = null where tenant_id = 'acme'",
            "nodes",
            "acme: nodes in search",
        ),
        (
            "alter table knowledge_nodes drop constraint knowledge_nodes_tenant_id_parent_id_fkey;"
            "update knowledge_nodes set parent_id = 0"
            " where tenant_id = 'acme' and parent_id is not null",
            "nodes",
            "acme: nodes with a parent that is gone",
        ),
    ],
)
def test_statistics_that_differ_from_a_recount_name_the_tenant_alone(
    filled: LiveDatabase, statement: str, name: str, named: str
):
    alter(filled, statement)
    check = diagnose(filled)[name]
    assert check.status == "failed"
    assert named in check.detail
    assert "globex" not in check.detail


def test_a_grant_to_a_role_that_is_gone_is_a_warning(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    alter(database, "insert into contextforge.analyst_grants values ('gone_role', 'acme')")
    check = diagnose(database)["analysts"]
    assert check.status == "warning"
    assert "gone_role" in check.detail


def test_many_segments_and_dead_postings_call_for_maintenance(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    alter(
        database,
        "insert into contextforge.segments (tenant_id, segment_id, documents, total_length,"
        " postings, live_postings)"
        " select 'acme', n, 0, 0, 1000, 0 from generate_series(1, 101) as n",
    )
    check = diagnose(database)["segments"]
    assert check.status == "warning"
    assert "acme (101 segments, 100% of postings dead)" in check.detail
    assert check.remedy == "contextforge maintain"


def test_a_sequence_near_its_limit_is_a_warning(database: LiveDatabase):
    alter(database, "select setval('contextforge.doc_ids', 2000000000)")
    check = diagnose(database)["sequences"]
    assert check.status == "warning"
    assert "doc_ids (93%)" in check.detail


def test_an_owner_who_can_log_in_is_found(database: LiveDatabase):
    alter(database, "alter role contextforge_owner login")
    try:
        check = diagnose(database)["roles"]
    finally:
        alter(database, "alter role contextforge_owner nologin")
    assert check.status == "failed"
    assert "contextforge_owner can log in" in check.detail


def test_an_unsafe_service_login_is_found(database: LiveDatabase):
    check = diagnose(database, database_url=database.admin_url)["service login"]
    assert check.status == "failed"
    assert "superuser" in check.detail


def test_a_service_on_another_database_is_found(
    database: LiveDatabase, make_database: MakeDatabase
):
    other = make_database()
    check = diagnose(database, database_url=other.service_url)["service login"]
    assert check.status == "failed"
    assert "two different databases" in check.detail


def test_without_the_url_of_the_service_its_login_is_not_checked(database: LiveDatabase):
    assert diagnose(database, database_url=None)["service login"].status == "warning"


def test_a_database_that_was_never_migrated_is_told_to_migrate(
    database: LiveDatabase, make_database: MakeDatabase
):
    checks = diagnose(make_database(embedding_dim=None))
    assert checks["versions"].status == "failed"
    assert checks["versions"].remedy == "contextforge migrate"
    assert "statistics" not in checks
