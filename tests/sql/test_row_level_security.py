"""Two tenants, every tenant table, every operation, every kind of caller: who touches what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import psycopg
import pytest

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_links
from service.types import LinkDraft
from tests.conftest import MakeLogin, MakeNode, MakeTenant, Upsert
from tests.live_database import SERVICE_LOGIN, LiveDatabase
from tests.sql.access_matrix import (
    DENIED,
    OPERATIONS,
    OWNERS_ALONE,
    SECOND,
    TENANT_TABLES,
    TENANTS,
    Actor,
    Observation,
    count_rows,
    expect_matrix,
    observe_actor,
    sample_rows,
)

ACME = frozenset({"acme"})
GLOBEX = frozenset({"globex"})
REGISTRY = (
    "contextforge.analyst_grants",
    "contextforge.api_keys",
    "contextforge.embedder_profiles",
    "contextforge.installation",
    "contextforge.job_documents",
    "contextforge.jobs",
    "contextforge.key_buckets",
    "contextforge.schema_version",
    "contextforge.tenants",
)
WEAK_CHECK = "alter policy api_tenants on {table} with check (true)"
MUTATIONS = (
    "drop policy owner_all on {table}",
    "drop policy api_tenants on {table}",
    "drop policy analyst_tenants on {table}",
    "alter policy api_tenants on {table} using (true)",
    WEAK_CHECK,
    "alter policy api_tenants on {table} to public",
    "alter policy analyst_tenants on {table} using (true)",
    "alter policy analyst_tenants on {table} to public",
    "alter policy owner_all on {table} using (false)",
    "alter policy owner_all on {table} to public",
    "alter table {table} no force row level security",
    "alter table {table} disable row level security",
    "grant update on {table} to contextforge_analyst",
    "revoke select on {table} from contextforge_analyst",
)


@dataclass(frozen=True, slots=True)
class World:
    """Two tenants with rows in every table, and everyone who might look at them."""

    database: LiveDatabase
    actors: tuple[Actor, ...]
    samples: dict[tuple[str, str], str]
    rows: dict[tuple[str, str], int]

    def find_actor(self, name: str) -> Actor:
        return next(actor for actor in self.actors if actor.name == name)


@pytest.fixture
def world(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_login: MakeLogin,
    make_node: MakeNode,
    upsert: Upsert,
) -> World:
    for tenant in TENANTS:
        make_tenant(tenant)
        make_tenant(SECOND[tenant])
        nodes = [make_node("a", "red apples"), make_node("b", "green pears")]
        upsert(tenant, nodes, embeddings=[np.eye(8, dtype=np.float32)[n] for n in range(2)])
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_links(connection, tenant, links=[LinkDraft("a", "b")])
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("""
            insert into node_ranks (tenant_id, node_id, rank)
            select tenant_id, min(node_id), 1 from knowledge_nodes group by tenant_id;
            insert into contextforge.rank_states (
                tenant_id, articles, links, linked_nodes, largest_rank
            )
            select tenant_id, 2, 1, 2, 1 from node_ranks;
            insert into contextforge.node_references (tenant_id, source_id, kind, target)
            select tenant_id, min(node_id), 'path', 'b.md' from knowledge_nodes group by tenant_id;
            insert into contextforge.next_embeddings (
                tenant_id, node_id, embedder_version, content_hash, embedding
            )
            select tenant_id, node_id, 'next', content_hash, embedding
            from knowledge_nodes join node_ranks using (tenant_id, node_id);
            insert into contextforge.ann_nodes (
                tenant_id, node_id, article_id, node_type, dataset_name, embedding
            )
            select tenant_id, node_id, article_id, node_type, dataset_name, embedding
            from contextforge.search_nodes;
            insert into contextforge.replaced_settings (tenant_id, version, settings)
            select tenant_id, 1, '{}' from node_ranks;
            insert into contextforge.egress_policies (tenant_id, policy)
            select tenant_id, 'all' from node_ranks;
            insert into egress_calls (
                tenant_id, call_id, purpose, consent, model, text_sha256
            )
            select tenant_id, gen_random_uuid(), 'synthesis', 'policy', 'm', sha256('text')
            from node_ranks;
            insert into traces (
                tenant_id, trace_id, kind, key_id, query_sha256, settings, node_ids, scores,
                steps, milliseconds
            )
            select tenant_id, gen_random_uuid(), 'search', 'k', sha256('q'), '{}', '{}', '{}',
                '{}', '{}'
            from node_ranks;
            insert into feedback (tenant_id, feedback_id, trace_id, key_id, signal)
            select tenant_id, gen_random_uuid(), trace_id, 'k', 'helpful' from traces;
            insert into experiments (tenant_id, experiment_id, name, share, settings)
            select tenant_id, gen_random_uuid(), 'x', 0.5, '{}' from node_ranks;
            insert into asked_questions (tenant_id, query_sha256, question)
            select tenant_id, sha256('q'), 'q' from node_ranks;
            insert into recall_audits (tenant_id, audit_id, path, expected, found)
            select tenant_id, gen_random_uuid(), 'hnsw', 20, 19 from node_ranks;
            insert into size_marks (
                tenant_id, marked_on, nodes, vectors, segments, postings, dead_postings, bytes
            )
            select tenant_id, current_date, 1, 1, 1, 1, 0, 1 from node_ranks;
            delete from contextforge.tenant_profiles where tenant_id in ('acme-2', 'globex-2');
        """)
    both = "acme,acme-2,globex,globex-2"
    granted, ungranted = make_login(granted=["acme"]), make_login()
    stranger = make_login("stranger", member_of=())
    actors = (
        Actor("owner", "contextforge_owner", reads=ACME | GLOBEX, writes=ACME | GLOBEX),
        Actor("api of acme", SERVICE_LOGIN, "acme,acme-2", reads=ACME, writes=ACME),
        Actor("api of globex", SERVICE_LOGIN, "globex,globex-2", reads=GLOBEX, writes=GLOBEX),
        Actor("api that names no tenant", SERVICE_LOGIN),
        Actor("api after commit", SERVICE_LOGIN, ""),
        Actor("analyst of acme", granted, reads=ACME),
        Actor("analyst of acme posing as the api", granted, both, reads=ACME),
        Actor("analyst without grants", ungranted),
        Actor("analyst without grants posing as the api", ungranted, both),
        Actor("stranger", stranger, has_grants=False),
        Actor("stranger posing as the api", stranger, both, has_grants=False),
    )
    with psycopg.connect(database.admin_url) as connection:
        return World(database, actors, sample_rows(connection), count_rows(connection))


def observe_by_login(world: World) -> Observation:
    """The matrix as each actor finds it through a connection of its own."""
    found: Observation = {}
    for actor in world.actors:
        owner = actor.name == "owner"
        url = world.database.admin_url if owner else world.database.url_for(actor.role)
        with psycopg.connect(url) as connection:
            if actor.setting == "":
                connection.execute("set local app.tenant_ids = 'acme,globex'")
                connection.commit()
                row = connection.execute(
                    "select current_setting('app.tenant_ids', true)"
                ).fetchone()
                assert row == ("",)
            found |= observe_actor(
                connection, actor, world.samples, tables=TENANT_TABLES, become=owner
            )
    return found


@pytest.fixture
def inspector(world: World) -> Iterator[psycopg.Connection]:
    """A superuser's connection in a transaction that is rolled back."""
    with psycopg.connect(world.database.admin_url) as connection:
        yield connection
        connection.rollback()


def find_differences(connection: psycopg.Connection, world: World, table: str) -> list[str]:
    """Where one table is not as it must be: access by every actor, and the flags of the table."""
    expected = expect_matrix(world.actors, world.rows, [table])
    found: Observation = {}
    for actor in world.actors:
        found |= observe_actor(connection, actor, world.samples, tables=[table], become=True)
    flags = connection.execute(
        "select relrowsecurity, relforcerowsecurity from pg_class where oid = %s::regclass",
        (table,),
    ).fetchone()
    wrong = [f"{cell}: {found[cell]}" for cell in expected if found[cell] != expected[cell]]
    return wrong if flags == (True, True) else [*wrong, f"flags {flags}"]


def test_every_actor_touches_exactly_the_rows_it_may(world: World) -> None:
    expected = expect_matrix(world.actors, world.rows, TENANT_TABLES)

    assert observe_by_login(world) == expected


def test_every_denial_has_someone_for_whom_the_same_statement_works(world: World) -> None:
    expected = expect_matrix(world.actors, world.rows, TENANT_TABLES)
    cells = {cell[1:] for cell in expected if cell[3] in OPERATIONS}

    works = {c[1:] for c, outcome in expected.items() if isinstance(outcome, int) and outcome > 0}
    assert cells <= works
    assert len(cells) == len(TENANT_TABLES) * len(TENANTS) * len(OPERATIONS)


def test_the_tenant_tables_are_all_known_and_all_force_row_level_security(world: World) -> None:
    with psycopg.connect(world.database.admin_url) as connection:
        tables = connection.execute("""
            select n.nspname || '.' || c.relname, c.relrowsecurity and c.relforcerowsecurity
            from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
            where c.relkind in ('r', 'p') and n.nspname in ('public', 'contextforge')
            order by 1
        """).fetchall()

    assert [name for name, forced in tables if forced] == list(TENANT_TABLES)
    assert [name for name, forced in tables if not forced] == list(REGISTRY)


@pytest.mark.parametrize("table", TENANT_TABLES)
def test_any_weakened_policy_is_noticed(
    world: World, inspector: psycopg.Connection, table: str
) -> None:
    assert find_differences(inspector, world, table) == []
    unnoticed = []
    for mutation in MUTATIONS:
        with inspector.transaction(force_rollback=True):
            inspector.execute(mutation.format(table=table))
            if not find_differences(inspector, world, table):
                unnoticed.append(mutation)

    # What the service may not write at all is held by its grants.
    read_only = set(OPERATIONS) - {"read"} <= set(OWNERS_ALONE.get(table, ()))
    assert unnoticed == ([WEAK_CHECK] if read_only else [])


def test_no_role_but_the_owner_reads_a_registry_table(world: World) -> None:
    roles = {actor.role for actor in world.actors} - {"contextforge_owner"}
    with psycopg.connect(world.database.admin_url) as connection:
        for table in REGISTRY:
            connection.execute(f"select 1 from {table}")
            for role in sorted(roles):
                with connection.transaction(force_rollback=True):
                    connection.execute(f"set local role {role}")
                    with pytest.raises(psycopg.errors.InsufficientPrivilege) as denial:
                        connection.execute(f"select 1 from {table}")
                assert denial.value.sqlstate == DENIED


def test_a_login_sees_its_own_grants_and_no_others(world: World) -> None:
    def read_grants(actor: str) -> list[tuple[str]]:
        url = world.database.url_for(world.find_actor(actor).role)
        with psycopg.connect(url) as connection:
            return connection.execute(
                "select tenant_id from contextforge.granted_tenants"
            ).fetchall()

    assert read_grants("analyst of acme") == [("acme",)]
    assert read_grants("analyst without grants") == []


def test_a_grant_to_a_group_counts_for_its_members(world: World, make_login: MakeLogin) -> None:
    group = make_login("group", granted=["globex"])
    member, outsider = make_login("member", member_of=[group]), make_login("outsider")

    for login, count in ((member, world.rows["public.knowledge_nodes", "globex"]), (outsider, 0)):
        with psycopg.connect(world.database.url_for(login)) as connection:
            assert connection.execute("select 1 from knowledge_nodes").rowcount == count


def test_a_data_migration_by_the_owner_changes_rows_of_every_tenant(world: World) -> None:
    with owner_transaction(world.database.admin) as connection:
        changed = connection.exec_driver_sql("update knowledge_nodes set title = 'moved'").rowcount
    with psycopg.connect(world.database.admin_url) as connection:
        stored = connection.execute("select 1 from knowledge_nodes where title = 'moved'").rowcount

    assert changed == stored == 4
