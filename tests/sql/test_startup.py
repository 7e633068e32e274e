"""What the service refuses to start on, each with a sentence that says what to do."""

from __future__ import annotations

import pytest
from psycopg import sql

from service.db.database import open_admin, open_database
from service.db.engine import open_admin_engine, plain_transaction
from service.db.startup import check_login, list_tenant_tables
from service.errors import DatabaseUnavailable, DatabaseUnsuitable, SettingsError, UnsafeLogin
from service.settings import Settings
from tests.conftest import MakeDatabase, MakeLogin
from tests.live_database import SMALL_DIM, LiveDatabase, LiveServer

TENANT_TABLES = {
    "contextforge.ann_nodes",
    "contextforge.egress_policies",
    "contextforge.link_marks",
    "contextforge.next_embeddings",
    "contextforge.node_references",
    "contextforge.postings",
    "contextforge.rank_states",
    "contextforge.replaced_settings",
    "contextforge.search_nodes",
    "contextforge.segments",
    "contextforge.tenant_profiles",
    "public.asked_questions",
    "public.egress_calls",
    "public.experiments",
    "public.feedback",
    "public.knowledge_nodes",
    "public.node_links",
    "public.node_ranks",
    "public.recall_audits",
    "public.size_marks",
    "public.traces",
}


def check(database: LiveDatabase, login: str) -> None:
    engine = open_admin_engine(database.url_for(login))
    try:
        with plain_transaction(engine) as connection:
            check_login(connection)
    finally:
        engine.dispose()


def alter(database: LiveDatabase, statement: str) -> None:
    with database.admin.begin() as connection:
        connection.exec_driver_sql(statement)


def settings_for(database: LiveDatabase, **changes: object) -> Settings:
    given = {"database_url": database.service_url, "embedding_dim": SMALL_DIM} | changes
    return Settings.model_validate(given)


def test_the_login_of_the_service_is_accepted(database: LiveDatabase):
    check(database, "contextforge_service")


def test_every_tenant_table_is_known(database: LiveDatabase):
    with plain_transaction(database.engine) as connection:
        assert {table.name for table in list_tenant_tables(connection)} == TENANT_TABLES


# --- logins ---------------------------------------------------------------------------------


def test_a_superuser_is_refused(database: LiveDatabase):
    with pytest.raises(UnsafeLogin, match="superuser"):
        check(database, "postgres")


def test_a_login_with_bypassrls_is_refused(
    database: LiveDatabase, server: LiveServer, make_login: MakeLogin
):
    login = make_login("service", member_of=("contextforge_api",))
    check(database, login)
    server.execute(sql.SQL("alter role {} bypassrls").format(sql.Identifier(login)))
    with pytest.raises(UnsafeLogin, match="BYPASSRLS"):
        check(database, login)


def test_a_member_of_the_owner_is_refused(database: LiveDatabase, make_login: MakeLogin):
    login = make_login("service", member_of=("contextforge_api", "contextforge_owner"))
    with pytest.raises(UnsafeLogin, match="member of contextforge_owner"):
        check(database, login)


def test_a_login_that_is_no_member_of_the_api_role_is_refused(
    database: LiveDatabase, make_login: MakeLogin
):
    login = make_login("service", member_of=())
    with pytest.raises(DatabaseUnsuitable, match="not a member of contextforge_api") as caught:
        check(database, login)
    assert f'grant contextforge_api to "{login}"' in str(caught.value)


def test_an_analyst_cannot_be_the_service(database: LiveDatabase, make_login: MakeLogin):
    login = make_login("service", member_of=("contextforge_api", "contextforge_analyst"))
    with pytest.raises(UnsafeLogin, match="contextforge_analyst too"):
        check(database, login)


def test_the_owner_of_one_tenant_table_is_refused(database: LiveDatabase, make_login: MakeLogin):
    login = make_login("service", member_of=("contextforge_api",))
    alter(database, f'alter table contextforge.postings owner to "{login}"')
    with pytest.raises(UnsafeLogin, match=r"owns contextforge\.postings"):
        check(database, login)
    alter(database, "alter table contextforge.postings owner to contextforge_owner")
    check(database, login)


# --- the database ---------------------------------------------------------------------------


@pytest.mark.parametrize("table", sorted(TENANT_TABLES))
@pytest.mark.parametrize("change", ["no force row level security", "disable row level security"])
def test_a_tenant_table_without_forced_security_is_refused(
    database: LiveDatabase, table: str, change: str
):
    alter(database, f"alter table {table} {change}")
    with pytest.raises(DatabaseUnsuitable, match=f"not enabled and forced on {table}"):
        check(database, "contextforge_service")


def test_a_new_table_of_tenants_is_held_to_the_same(database: LiveDatabase):
    alter(
        database,
        "set role contextforge_owner; create table contextforge.notes (tenant_id text, note text)",
    )
    with pytest.raises(DatabaseUnsuitable, match=r"contextforge\.notes"):
        check(database, "contextforge_service")


def test_a_tenant_table_without_a_policy_is_refused(database: LiveDatabase):
    for policy in ("owner_all", "api_tenants", "analyst_tenants"):
        alter(database, f"drop policy {policy} on node_links")
    with pytest.raises(DatabaseUnsuitable, match=r"public\.node_links has no policy"):
        check(database, "contextforge_service")


def test_a_database_that_is_not_at_the_head_is_refused(database: LiveDatabase):
    alter(database, "update contextforge.schema_version set version_num = '0001'")
    with pytest.raises(DatabaseUnsuitable, match="at migration 0001") as caught:
        check(database, "contextforge_service")
    assert "contextforge migrate" in str(caught.value)


def test_a_database_that_was_never_migrated_is_refused(
    database: LiveDatabase, make_database: MakeDatabase
):
    empty = make_database(embedding_dim=None)
    with pytest.raises(DatabaseUnsuitable, match="never been migrated"):
        check(empty, "contextforge_service")


# --- opening --------------------------------------------------------------------------------


def test_the_service_opens_without_the_url_of_the_administrator(database: LiveDatabase):
    with open_database(settings_for(database)) as opened:
        assert opened.url == database.service_url
        assert opened.server is None
        with plain_transaction(opened.engine) as connection:
            user = connection.exec_driver_sql("select current_user").scalar()
    assert user == "contextforge_service"


def test_the_service_does_not_open_as_a_superuser(database: LiveDatabase):
    with (
        pytest.raises(UnsafeLogin),
        open_database(settings_for(database, database_url=database.admin_url)),
    ):
        pass


def test_another_embedding_dimension_is_refused_with_the_way_out(database: LiveDatabase):
    with (
        pytest.raises(SettingsError, match="Set EMBEDDING_DIM=8"),
        open_database(settings_for(database, embedding_dim=9)),
    ):
        pass


def test_administration_without_its_url_is_refused(database: LiveDatabase):
    with (
        pytest.raises(SettingsError, match="ADMIN_DATABASE_URL is not"),
        open_admin(settings_for(database)),
    ):
        pass


def test_the_url_of_the_administrator_alone_does_not_start_the_service(database: LiveDatabase):
    settings = Settings(admin_database_url=database.admin_url)
    with pytest.raises(SettingsError, match="DATABASE_URL is not"), open_database(settings):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:1", "nosuch.invalid"])
def test_an_unreachable_server_is_one_sentence_without_the_password(host: str):
    settings = Settings(database_url=f"postgresql://me:sesame@{host}/db")
    with pytest.raises(DatabaseUnavailable) as caught, open_database(settings):
        pass
    message = str(caught.value)
    assert message.startswith("The database of DATABASE_URL cannot be used: ")
    assert "\n" not in message
    assert "sesame" not in message
