"""What may leave the machine, and the record of it: one Python function per SQL function."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from service.types import EgressCall, EgressConsent, EgressPolicy, EgressPurpose

EgressPlace = tuple[datetime, str]
"""When the last call of a page began, and its id."""


def set_egress_policy(connection: Connection, tenant_id: str, *, policy: str) -> None:
    """Decide what may be sent for a tenant; the connection is the owner's."""
    connection.exec_driver_sql("select public.set_egress_policy(%s, %s)", (tenant_id, policy))


def read_egress_policies(connection: Connection, tenant_ids: Sequence[str]) -> list[EgressPolicy]:
    """Return what may be sent for each tenant, by name."""
    statement = "select tenant_id, policy, changed_at from public.read_egress_policies(%s)"
    rows = connection.exec_driver_sql(statement, (list(tenant_ids),))
    return [EgressPolicy(*row) for row in rows]


def start_egress_call(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    purpose: EgressPurpose,
    model: str,
    text_sha256: bytes,
    consent: EgressConsent = "policy",
) -> UUID:
    """Record a call that is about to be made; Forbidden where the policy does not allow it."""
    statement = "select public.start_egress_call(%s, %s, %s, %s, %s)"
    values = (list(tenant_ids), purpose, model, text_sha256, consent)
    call_id: UUID = connection.exec_driver_sql(statement, values).scalar_one()
    return call_id


def finish_egress_call(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    call_id: UUID,
    outcome: str,
    attempts: int,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> None:
    """Complete the record of a call."""
    statement = "select public.finish_egress_call(%s, %s, %s, %s, %s, %s)"
    values = (list(tenant_ids), call_id, outcome, attempts, input_tokens, output_tokens)
    connection.exec_driver_sql(statement, values)


def list_egress_calls(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    limit: int = 50,
    after: EgressPlace | None = None,
) -> list[EgressCall]:
    """Return the newest calls that were made for these tenants, from a place on."""
    older = "" if after is None else " and (started_at, call_id) < (%s, %s::uuid)"
    rows = connection.exec_driver_sql(
        "select tenant_id, call_id::text, purpose, consent, model, encode(text_sha256, 'hex'),"
        " started_at, finished_at, outcome, attempts, input_tokens, output_tokens"
        f" from public.egress_calls where tenant_id = any(%s){older}"
        " order by started_at desc, call_id desc, tenant_id limit %s",
        (list(tenant_ids), *(after or ()), limit),
    )
    return [EgressCall(*row) for row in rows]
