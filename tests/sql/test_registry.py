"""Tenants, analyst grants and API keys: what the owner may do and what the service finds."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql

from service.db import registry
from service.db.engine import open_admin_engine, owner_transaction, plain_transaction
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError
from service.types import Caller
from tests.conftest import MakeLogin, MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase, LiveServer


def authenticate(database: LiveDatabase, key: str) -> Caller | None:
    with plain_transaction(database.engine) as connection:
        return registry.authenticate_key(connection, key)


def make_key(database: LiveDatabase, *tenants: str, **options: object) -> registry.CreatedKey:
    with owner_transaction(database.admin) as connection:
        return registry.create_key(
            connection,
            "web",
            tenant_ids=tenants,
            scopes=["search"],
            **options,  # type: ignore[arg-type]
        )


def read_titles(database: LiveDatabase, login: str) -> set[str]:
    with psycopg.connect(database.url_for(login)) as connection:
        return {row[0] for row in connection.execute("select title from knowledge_nodes")}


# --- tenants --------------------------------------------------------------------------------


def test_a_tenant_is_created_once_and_listed_with_its_nodes(
    database: LiveDatabase, upsert: Upsert, make_node: MakeNode
):
    with owner_transaction(database.admin) as connection:
        assert registry.create_tenant(connection, "acme", display_name="Acme Corp")
        assert not registry.create_tenant(connection, "acme", display_name="Another")
        assert registry.create_tenant(connection, "globex")
    upsert("acme", [make_node("a", "words"), make_node("b", "words")])
    with owner_transaction(database.admin) as connection:
        acme, globex = registry.list_tenants(connection)
    assert (acme.tenant_id, acme.display_name, acme.nodes) == ("acme", "Acme Corp", 2)
    assert (globex.tenant_id, globex.display_name, globex.nodes) == ("globex", None, 0)


@pytest.mark.parametrize("name", ["", " ", "-a", "a b", "a,b", "x" * 64, "a\x00"])
def test_an_impossible_tenant_id_is_refused(database: LiveDatabase, name: str):
    with pytest.raises(InvalidInput), owner_transaction(database.admin) as connection:
        registry.create_tenant(connection, name)


def test_deleting_a_tenant_leaves_the_other_whole(
    database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
):
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        upsert(tenant, [make_node("a", "words")])
    with owner_transaction(database.admin) as connection:
        assert registry.delete_tenant(connection, "acme")
        assert not registry.delete_tenant(connection, "acme")
        (left,) = registry.list_tenants(connection)
    assert (left.tenant_id, left.nodes) == ("globex", 1)


def test_the_service_may_neither_create_nor_delete_nor_list_tenants(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    for attempt in (
        lambda c: registry.create_tenant(c, "globex"),
        lambda c: registry.delete_tenant(c, "acme"),
        registry.list_tenants,
        registry.list_keys,
        registry.list_grants,
    ):
        with pytest.raises(Forbidden), plain_transaction(database.engine) as connection:
            attempt(connection)


# --- analysts -------------------------------------------------------------------------------


def test_a_granted_analyst_sees_the_tenant_and_a_revoked_one_nothing(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_login: MakeLogin,
    upsert: Upsert,
    make_node: MakeNode,
):
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        upsert(tenant, [make_node("a", "words", title=tenant)])
    login = make_login(member_of=())
    with owner_transaction(database.admin) as connection:
        assert registry.grant_tenant(connection, login, "acme")
        assert not registry.grant_tenant(connection, login, "acme")
        (grant,) = registry.list_grants(connection)
    assert (grant.role_name, grant.tenant_id, grant.role_exists) == (login, "acme", True)
    assert read_titles(database, login) == {"acme"}

    with owner_transaction(database.admin) as connection:
        assert registry.revoke_tenant(connection, login, "acme")
        assert not registry.revoke_tenant(connection, login, "acme")
    assert read_titles(database, login) == set()


def test_a_role_that_does_not_inherit_sees_what_it_was_granted(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_login: MakeLogin,
    upsert: Upsert,
    make_node: MakeNode,
):
    upsert(make_tenant("acme"), [make_node("a", "words", title="acme")])
    login = make_login("odd Name", member_of=())
    with database.admin.begin() as connection:
        connection.exec_driver_sql(f'alter role "{login}" noinherit')
    with owner_transaction(database.admin) as connection:
        registry.grant_tenant(connection, login, "acme")
    assert read_titles(database, login) == {"acme"}


def test_a_missing_role_is_named_with_the_way_to_create_it(database: LiveDatabase):
    with (
        pytest.raises(NotFound, match='no role "Nobody Here"') as caught,
        owner_transaction(database.admin) as connection,
    ):
        registry.grant_tenant(connection, "Nobody Here", "acme")
    assert 'create role "Nobody Here" login' in str(caught.value.hint)


def test_a_grant_on_an_unknown_tenant_is_refused(
    database: LiveDatabase, make_login: MakeLogin, make_tenant: MakeTenant
):
    make_tenant("acme")
    login = make_login(member_of=())
    with (
        pytest.raises(NotFound, match='no tenant "globex"'),
        owner_transaction(database.admin) as connection,
    ):
        registry.grant_tenant(connection, login, "globex")


@pytest.mark.parametrize(
    "role",
    [
        "postgres",
        "contextforge_owner",
        "contextforge_api",
        "contextforge_analyst",
        "contextforge_service",
    ],
)
def test_roles_that_bypass_or_belong_to_the_service_cannot_be_analysts(
    database: LiveDatabase, make_tenant: MakeTenant, role: str
):
    make_tenant("acme")
    with pytest.raises(Conflict), owner_transaction(database.admin) as connection:
        registry.grant_tenant(connection, role, "acme")


def test_a_grant_outlives_its_role_and_can_be_revoked_then(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "insert into contextforge.analyst_grants (role_name, tenant_id) values ('gone', 'acme')"
        )
        (grant,) = registry.list_grants(connection)
        assert not grant.role_exists
        assert registry.revoke_tenant(connection, "gone", "acme")


def test_an_administrator_who_is_no_superuser_grants_once_he_holds_the_admin_option(
    database: LiveDatabase, server: LiveServer, make_tenant: MakeTenant, make_login: MakeLogin
):
    make_tenant("acme")
    analyst = make_login(member_of=())
    admin = make_login("admin", member_of=("contextforge_owner",))
    engine = open_admin_engine(database.url_for(admin))
    try:
        with (
            pytest.raises(Forbidden, match="may not make"),
            owner_transaction(engine) as connection,
        ):
            registry.grant_tenant(connection, analyst, "acme")
        server.execute(
            sql.SQL("grant contextforge_analyst to {} with admin option, inherit false").format(
                sql.Identifier(admin)
            )
        )
        with owner_transaction(engine) as connection:
            assert registry.grant_tenant(connection, analyst, "acme")
    finally:
        engine.dispose()
        # What the administrator granted depends on him.
        server.execute(
            sql.SQL("revoke contextforge_analyst from {} cascade").format(sql.Identifier(admin))
        )


# --- keys -----------------------------------------------------------------------------------


def test_a_key_opens_its_tenants_and_no_other(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    make_tenant("globex")
    first = make_key(database, "acme", acl_groups=["staff", "staff"])
    second = make_key(database, "globex")
    assert authenticate(database, first.text) == Caller(
        first.key.key_id, ("acme",), ("search",), ("staff",)
    )
    found = authenticate(database, second.text)
    assert found is not None
    assert found.tenant_ids == ("globex",)


def test_only_the_hash_of_a_key_is_stored_and_no_repr_shows_it(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    created = make_key(database, "acme")
    assert created.text.startswith(f"cf_{created.key.key_id}_")
    assert created.text not in repr(created)
    with owner_transaction(database.admin) as connection:
        row = connection.exec_driver_sql(
            "select key_hash, k::text from contextforge.api_keys as k"
        ).one()
    assert row[0] == hashlib.sha256(created.text.encode()).digest()
    assert created.text not in row[1]


def test_a_revoked_key_opens_nothing_and_stays_listed(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    revoked, kept = make_key(database, "acme"), make_key(database, "acme")
    with owner_transaction(database.admin) as connection:
        assert registry.revoke_key(connection, revoked.key.key_id)
        assert registry.revoke_key(connection, revoked.key.key_id)
        assert not registry.revoke_key(connection, "nonsense")
        listed = {key.key_id: key.revoked_at for key in registry.list_keys(connection)}
    assert authenticate(database, revoked.text) is None
    assert authenticate(database, kept.text) is not None
    assert listed[revoked.key.key_id] is not None
    assert listed[kept.key.key_id] is None


def test_an_expired_key_opens_nothing(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    created = make_key(database, "acme", expires_at=datetime.now(UTC) + timedelta(days=1))
    assert authenticate(database, created.text) is not None
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.api_keys set expires_at = now() - interval '1 second'"
        )
    assert authenticate(database, created.text) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
        lambda key: key.upper(),
        lambda key: key + " ",
        lambda key: key.removeprefix("cf_"),
        lambda _: "",
        lambda _: "cf_é\x00",
    ],
)
def test_a_wrong_key_opens_nothing(database: LiveDatabase, make_tenant: MakeTenant, change):
    make_tenant("acme")
    created = make_key(database, "acme")
    assert authenticate(database, created.text) is not None
    assert authenticate(database, change(created.text)) is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"scopes": ["search", "root"]}, InvalidInput, '"root" is not a scope'),
        ({"scopes": []}, InvalidInput, "at least one scope"),
        ({"tenant_ids": []}, InvalidInput, "at least one tenant"),
        ({"tenant_ids": ["acme", "globex"]}, NotFound, 'no tenant "globex"'),
        ({"tenant_ids": ["a,b"]}, NotFound, 'no tenant "a,b"'),
        ({"acl_groups": [""]}, InvalidInput, "group is empty"),
        ({"expires_at": datetime.now(UTC)}, InvalidInput, "expired already"),
        ({"expires_at": datetime.max}, InvalidInput, "time zone"),  # noqa: DTZ901
    ],
)
def test_a_key_that_makes_no_sense_is_refused(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    changes: dict[str, object],
    error: type[ServiceError],
    message: str,
):
    make_tenant("acme")
    options: dict[str, object] = {"tenant_ids": ["acme"], "scopes": ["search"]} | changes
    with pytest.raises(error, match=message), owner_transaction(database.admin) as connection:
        registry.create_key(connection, "web", **options)  # type: ignore[arg-type]


def test_a_key_without_a_name_is_refused(database: LiveDatabase):
    with (
        pytest.raises(InvalidInput, match="name is empty"),
        owner_transaction(database.admin) as connection,
    ):
        registry.create_key(connection, " ", tenant_ids=["acme"], scopes=["search"])


def test_a_key_of_two_tenants_loses_the_deleted_one(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    make_tenant("globex")
    both, one = make_key(database, "acme", "globex"), make_key(database, "acme")
    with owner_transaction(database.admin) as connection:
        registry.delete_tenant(connection, "acme")
    found = authenticate(database, both.text)
    assert found is not None
    assert found.tenant_ids == ("globex",)
    assert authenticate(database, one.text) is None
