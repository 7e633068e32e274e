"""Settings of a tenant's own: written, undone, read, and nobody else's."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import Connection

from service.db.engine import (
    open_admin_engine,
    owner_transaction,
    plain_transaction,
    tenant_transaction,
)
from service.db.registry import delete_tenant
from service.db.tenant_settings import (
    TENANT_SETTINGS,
    apply_tenant_settings,
    read_tenant_settings,
    undo_tenant_settings,
    write_tenant_settings,
)
from service.errors import Forbidden, InvalidInput, NotFound, SettingsError
from service.settings import Settings
from service.types import Json
from tests.conftest import MakeLogin, MakeTenant
from tests.live_database import LiveDatabase


def read(database: LiveDatabase, tenant: str) -> dict[str, Json]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return read_tenant_settings(connection, tenant)


def write(database: LiveDatabase, tenant: str, **settings: Json) -> dict[str, Json]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return write_tenant_settings(connection, tenant, settings=settings)


def undo(database: LiveDatabase, tenant: str) -> dict[str, Json]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return undo_tenant_settings(connection, tenant)


def test_what_is_written_is_read_and_each_undo_goes_one_step_back(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    assert read(database, "acme") == {}
    assert write(database, "acme", hybrid_fusion="convex") == {}
    assert write(database, "acme", hybrid_rrf_k=30) == {"hybrid_fusion": "convex"}
    assert read(database, "acme") == {"hybrid_rrf_k": 30}
    assert undo(database, "acme") == {"hybrid_fusion": "convex"}
    assert undo(database, "acme") == read(database, "acme") == {}
    with pytest.raises(NotFound, match="no earlier settings"):
        undo(database, "acme")


def test_a_tenants_settings_stand_before_those_of_the_service():
    own = apply_tenant_settings(
        Settings(hybrid_rrf_k=10, mmr_alpha=0.2), {"hybrid_rrf_k": 30, "hybrid_fusion": "convex"}
    )
    assert (own.hybrid_rrf_k, own.hybrid_fusion, own.mmr_alpha) == (30, "convex", 0.2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"hybrid_fusoin": "rrf"}, "Did you mean hybrid_fusion"),
        ({"database_url": "postgresql://elsewhere/db"}, "not a setting of a tenant"),
        ({"hybrid_fusion": "best"}, "HYBRID_FUSION in the tenant's settings must be rrf or convex"),
        ({"hybrid_keyword_weight": 2}, "HYBRID_KEYWORD_WEIGHT"),
        ({"hybrid_intent_weights": {"lokup": [1, 0]}}, "must be a JSON object of intents"),
        ({"hybrid_keyword_weight": 0, "hybrid_vector_weight": 0}, "must not both be 0"),
    ],
)
def test_a_setting_that_is_unknown_or_impossible_is_refused_and_nothing_is_stored(
    database: LiveDatabase, make_tenant: MakeTenant, settings: dict[str, Json], complaint: str
):
    make_tenant("acme")
    with pytest.raises(SettingsError, match=complaint):
        write(database, "acme", **settings)
    assert read(database, "acme") == {}


def test_weights_by_intent_are_stored_and_come_back_as_they_were(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    write(database, "acme", hybrid_intent_weights={"lookup": [0.8, 0.2]})
    stored = read(database, "acme")
    assert stored == {"hybrid_intent_weights": {"lookup": [0.8, 0.2]}}
    used = apply_tenant_settings(Settings(), stored)
    assert used.hybrid_intent_weights == {"lookup": (0.8, 0.2)}


def test_every_setting_a_tenant_may_have_is_one_of_the_service():
    assert set(TENANT_SETTINGS) < set(Settings.model_fields)


def test_what_this_release_does_not_know_is_not_in_force(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.tenant_profiles"
            """ set settings = '{"bygone": 1, "hybrid_rrf_k": 30}'"""
        )
    assert read(database, "acme") == {"hybrid_rrf_k": 30}


@pytest.mark.parametrize("settings", ["null", "[]", "3"])
def test_only_an_object_can_be_stored(
    database: LiveDatabase, make_tenant: MakeTenant, settings: str
):
    make_tenant("acme")
    with (
        pytest.raises(InvalidInput, match="not a json object"),
        tenant_transaction(database.engine, ["acme"]) as connection,
    ):
        connection.exec_driver_sql("select write_tenant_settings('acme', %s::jsonb)", (settings,))


# --- whose they are ---------------------------------------------------------------------------


def test_one_tenants_settings_are_not_the_others(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    make_tenant("globex")
    write(database, "acme", hybrid_fusion="convex")
    assert read(database, "globex") == {}
    with pytest.raises(NotFound, match="no earlier settings"):
        undo(database, "globex")
    for attempt in (
        lambda c: read_tenant_settings(c, "acme"),
        lambda c: write_tenant_settings(c, "acme", settings={}),
        lambda c: undo_tenant_settings(c, "acme"),
    ):
        with (
            pytest.raises(Forbidden, match='may not see tenant "acme"'),
            tenant_transaction(database.engine, ["globex"]) as connection,
        ):
            attempt(connection)
    assert read(database, "acme") == {"hybrid_fusion": "convex"}


def test_an_analyst_reads_what_was_granted_and_writes_nothing(
    database: LiveDatabase, make_tenant: MakeTenant, make_login: MakeLogin
):
    make_tenant("acme")
    make_tenant("globex")
    write(database, "acme", hybrid_fusion="convex")
    login = make_login(granted=["acme"])
    with psycopg.connect(database.url_for(login), autocommit=True) as connection:
        row = connection.execute("select read_tenant_settings('acme')").fetchone()
        assert row == ({"hybrid_fusion": "convex"},)
        for statement in (
            "select read_tenant_settings('globex')",
            "select write_tenant_settings('acme', '{}')",
            "select undo_tenant_settings('acme')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_the_administrator_may_write_too(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    engine = open_admin_engine(database.admin_url)
    try:
        with owner_transaction(engine) as connection:
            write_tenant_settings(connection, "acme", settings={"hybrid_rrf_k": 5})
    finally:
        engine.dispose()
    assert read(database, "acme") == {"hybrid_rrf_k": 5}


def test_a_deleted_tenant_leaves_no_earlier_settings(
    database: LiveDatabase, make_tenant: MakeTenant
):
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        write(database, tenant, hybrid_fusion="convex")
    with owner_transaction(database.admin) as connection:
        delete_tenant(connection, "acme")
        assert list_histories(connection) == ["globex"]


def list_histories(connection: Connection) -> list[str]:
    statement = "select tenant_id from contextforge.replaced_settings"
    return list(connection.exec_driver_sql(statement).scalars())


def test_a_transaction_that_names_no_tenant_reads_nothing(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    with pytest.raises(Forbidden), plain_transaction(database.engine) as connection:
        read_tenant_settings(connection, "acme")
