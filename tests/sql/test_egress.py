"""What may leave the machine for a tenant, and the record of what did."""

from __future__ import annotations

import hashlib
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection

from service.db.egress import (
    finish_egress_call,
    list_egress_calls,
    read_egress_policies,
    set_egress_policy,
    start_egress_call,
)
from service.db.engine import (
    open_admin_engine,
    owner_transaction,
    plain_transaction,
    refuse_writes,
    tenant_transaction,
)
from service.db.registry import delete_tenant
from service.errors import Forbidden, InvalidInput, LlmUnavailable, NotFound
from service.llm.calls import Reply, Request
from service.synthesis.egress import EgressRecorder, find_refusal
from service.types import EgressCall, EgressPurpose
from tests.conftest import MakeLogin, MakeTenant
from tests.live_database import LiveDatabase

HASH = hashlib.sha256(b"text").digest()


def set_policy(database: LiveDatabase, tenant: str, policy: str) -> None:
    with owner_transaction(database.admin) as connection:
        set_egress_policy(connection, tenant, policy=policy)


def start(database: LiveDatabase, *tenants: str, purpose: EgressPurpose = "synthesis") -> UUID:
    with tenant_transaction(database.engine, tenants) as connection:
        return start_egress_call(connection, tenants, purpose=purpose, model="m", text_sha256=HASH)


def list_calls(database: LiveDatabase, *tenants: str) -> list[EgressCall]:
    with tenant_transaction(database.engine, tenants) as connection:
        return list_egress_calls(connection, tenants)


def test_a_tenant_sends_nothing_until_it_is_allowed(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    with pytest.raises(
        Forbidden, match=r'policy of tenant "acme" is off.*egress set --tenant acme'
    ):
        start(database, "acme")
    assert list_calls(database, "acme") == []
    refusal = find_refusal(database.engine, ["acme"], purpose="synthesis")
    assert refusal == 'The egress policy of tenant "acme" is off.'


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("off", set()),
        ("expansion", {"expansion"}),
        ("synthesis", {"synthesis"}),
        ("all", {"expansion", "synthesis"}),
    ],
)
def test_a_policy_allows_what_it_names(
    database: LiveDatabase, make_tenant: MakeTenant, policy: str, allowed: set[str]
):
    make_tenant("acme")
    set_policy(database, "acme", policy)
    purposes: tuple[EgressPurpose, ...] = ("expansion", "synthesis")
    for purpose in purposes:
        refusal = find_refusal(database.engine, ["acme"], purpose=purpose)
        assert (refusal is None) == (purpose in allowed)
        if purpose in allowed:
            start(database, "acme", purpose=purpose)
        else:
            with pytest.raises(Forbidden):
                start(database, "acme", purpose=purpose)
    assert {call.purpose for call in list_calls(database, "acme")} == allowed


def test_a_call_for_two_tenants_needs_both_policies_and_is_recorded_for_both(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    make_tenant("globex")
    set_policy(database, "acme", "all")
    with pytest.raises(Forbidden, match="globex"):
        start(database, "acme", "globex")
    set_policy(database, "globex", "synthesis")
    call_id = str(start(database, "acme", "globex"))
    assert [call.call_id for call in list_calls(database, "acme")] == [call_id]
    assert [call.call_id for call in list_calls(database, "globex")] == [call_id]


def test_one_tenant_neither_sees_nor_finishes_the_calls_of_another(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    make_tenant("globex")
    set_policy(database, "acme", "all")
    call_id = start(database, "acme")
    with tenant_transaction(database.engine, ["globex"]) as connection:
        assert list_egress_calls(connection, ["acme", "globex"]) == []
        [policy] = read_egress_policies(connection, ["globex"])
        assert policy.policy == "off"
    with (
        pytest.raises(NotFound),
        tenant_transaction(database.engine, ["globex"]) as connection,
    ):
        finish_egress_call(connection, ["globex"], call_id=call_id, outcome="answered", attempts=1)
    with pytest.raises(Forbidden), tenant_transaction(database.engine, ["globex"]) as connection:
        read_egress_policies(connection, ["acme"])
    assert [call.outcome for call in list_calls(database, "acme")] == [None]


def test_an_analyst_reads_the_record_of_its_tenant_alone_and_writes_nothing(
    database: LiveDatabase, make_tenant: MakeTenant, make_login: MakeLogin
):
    for tenant in ("acme", "globex"):
        make_tenant(tenant)
        set_policy(database, tenant, "all")
        start(database, tenant)
    engine = open_admin_engine(database.url_for(make_login(granted=["acme"])))
    try:
        with plain_transaction(engine) as connection:
            calls = list_egress_calls(connection, ["acme", "globex"])
            assert [call.tenant_id for call in calls] == ["acme"]
            [policy] = read_egress_policies(connection, ["acme"])
            assert policy.policy == "all"
        with pytest.raises(Forbidden), plain_transaction(engine) as connection:
            start_egress_call(
                connection, ["acme"], purpose="synthesis", model="m", text_sha256=HASH
            )
    finally:
        engine.dispose()


def test_the_service_cannot_change_a_policy_nor_rewrite_or_delete_a_record(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    set_policy(database, "acme", "synthesis")
    start(database, "acme")
    for statement in (
        "select public.set_egress_policy('acme', 'all')",
        "update contextforge.egress_policies set policy = 'all' where tenant_id = 'acme'",
        "update public.egress_calls set text_sha256 = sha256('other') where tenant_id = 'acme'",
        "delete from public.egress_calls where tenant_id = 'acme'",
    ):
        with (
            pytest.raises(Forbidden),
            tenant_transaction(database.engine, ["acme"]) as connection,
        ):
            connection.exec_driver_sql(statement)


def test_an_unknown_policy_or_tenant_is_refused(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    with pytest.raises(InvalidInput, match="off, expansion, synthesis, all"):
        set_policy(database, "acme", "some")
    with pytest.raises((NotFound, Forbidden), match="nobody"):
        set_policy(database, "nobody", "all")


def test_a_call_is_finished_once(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    set_policy(database, "acme", "all")
    call_id = start(database, "acme")

    def finish(connection: Connection, which: UUID) -> None:
        finish_egress_call(
            connection,
            ["acme"],
            call_id=which,
            outcome="answered",
            attempts=2,
            input_tokens=5,
            output_tokens=3,
        )

    with tenant_transaction(database.engine, ["acme"]) as connection:
        finish(connection, call_id)
    [call] = list_calls(database, "acme")
    assert (call.outcome, call.attempts, call.input_tokens, call.output_tokens) == (
        "answered",
        2,
        5,
        3,
    )
    assert call.finished_at is not None
    assert call.finished_at >= call.started_at
    for which in (call_id, uuid4()):
        with pytest.raises(NotFound), tenant_transaction(database.engine, ["acme"]) as connection:
            finish(connection, which)


def test_a_deleted_tenant_leaves_no_policy_and_no_record(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    set_policy(database, "acme", "all")
    start(database, "acme")
    with owner_transaction(database.admin) as connection:
        delete_tenant(connection, "acme")
        for table in ("contextforge.egress_policies", "public.egress_calls"):
            assert connection.exec_driver_sql(f"select count(*) from {table}").scalar() == 0


# --- the recorder -------------------------------------------------------------------------------

REQUEST = Request(model="m", max_tokens=9, prompt="The question.", system="The rules.")


def test_the_record_has_the_hash_of_what_is_sent_and_not_the_text(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    set_policy(database, "acme", "all")
    record = EgressRecorder(database.engine, ("acme",), "synthesis")
    finish = record(REQUEST)
    [begun] = list_calls(database, "acme")
    finish(Reply("Yes.", 5, 3, calls=2))
    [ended] = list_calls(database, "acme")
    digest = hashlib.sha256(b"The rules.\n\nThe question.").hexdigest()
    assert (begun.text_sha256, begun.outcome, begun.consent) == (digest, None, "policy")
    assert (ended.outcome, ended.attempts, ended.input_tokens) == ("answered", 2, 5)
    with owner_transaction(database.admin) as connection:
        row = connection.exec_driver_sql("select c::text from egress_calls as c").scalar_one()
    assert "question" not in row


def test_a_failed_call_is_recorded_as_failed(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("acme")
    record = EgressRecorder(database.engine, ("acme",), "synthesis", consent="key")
    error = LlmUnavailable("Down.")
    error.calls = 2
    record(REQUEST)(error)
    [call] = list_calls(database, "acme")
    assert (call.outcome, call.attempts, call.consent) == ("failed", 2, "key")


def test_whoever_only_reads_nodes_has_its_calls_recorded_all_the_same(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    refuse_writes(database.engine)
    EgressRecorder(database.engine, ("acme",), "synthesis", consent="key")(REQUEST)(Reply("Yes."))
    [call] = list_calls(database, "acme")
    assert call.outcome == "answered"


def test_a_record_that_cannot_be_completed_stays_open_and_is_logged(
    database: LiveDatabase, make_tenant: MakeTenant, caplog: pytest.LogCaptureFixture
):
    make_tenant("acme")
    finish = EgressRecorder(database.engine, ("acme",), "synthesis", consent="key")(REQUEST)
    finish(Reply("Yes."))
    finish(Reply("Yes again."))
    assert "stays open" in caplog.text
    assert len(list_calls(database, "acme")) == 1
