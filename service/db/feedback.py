"""What people think of what was shown to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection

from service.types import Signal


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """Where a node stood in what was shown; position and node are None for the whole."""

    trace_id: UUID
    node_id: int | None
    position: int | None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A signal of one caller about a node of a trace, or about the whole of it."""

    feedback_id: UUID
    place: ShownPlace
    key_id: str
    caller: str
    signal: Signal
    note: str | None = None


def find_shown(
    connection: Connection, tenant_id: str, *, trace_id: UUID, node_id: int | None
) -> ShownPlace | None:
    """Return where a trace of the tenant showed a node; None if it did not, or is not there."""
    return _find_shown(connection, "t.trace_id = %s", (tenant_id, trace_id), node_id=node_id)


def find_newest_shown(
    connection: Connection, tenant_id: str, *, query_sha256: bytes, caller: str, node_id: int | None
) -> ShownPlace | None:
    """Return where the caller's newest trace of a question showed a node, if it did."""
    which = "t.query_sha256 = %s and t.caller = %s and t.error is null"
    return _find_shown(connection, which, (tenant_id, query_sha256, caller), node_id=node_id)


def store_feedback(connection: Connection, tenant_id: str, *, feedback: Feedback) -> Feedback:
    """Keep feedback and return what is kept: what the caller has said before stays as it is."""
    place = feedback.place
    connection.exec_driver_sql(
        "insert into public.feedback (tenant_id, feedback_id, trace_id, key_id, caller, signal,"
        " node_id, position, note) values (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict do nothing",
        (
            tenant_id,
            feedback.feedback_id,
            place.trace_id,
            feedback.key_id,
            feedback.caller,
            feedback.signal,
            place.node_id,
            place.position,
            feedback.note,
        ),
    )
    stored = connection.exec_driver_sql(
        "select f.feedback_id, f.key_id, f.note from public.feedback as f"
        " where f.tenant_id = %s and f.trace_id = %s and f.caller = %s and f.signal = %s"
        " and coalesce(f.node_id, 0) = %s",
        (tenant_id, place.trace_id, feedback.caller, feedback.signal, place.node_id or 0),
    ).one()
    return replace(feedback, feedback_id=stored[0], key_id=stored[1], note=stored[2])


def find_wait(
    connection: Connection, tenant_id: str, *, caller: str, most: int, window: timedelta
) -> float:
    """Return the seconds until the caller may give feedback again, at most so often in a window."""
    wait = connection.exec_driver_sql(
        "select extract(epoch from f.created_at + %s - clock_timestamp())"
        " from public.feedback as f where f.tenant_id = %s and f.caller = %s"
        " order by f.created_at desc offset %s limit 1",
        (window, tenant_id, caller, most - 1),
    ).scalar()
    return max(0.0, float(wait or 0.0))


def _find_shown(
    connection: Connection, which: str, values: tuple[object, ...], *, node_id: int | None
) -> ShownPlace | None:
    row = connection.exec_driver_sql(
        "select t.trace_id, array_position(t.node_ids, %s::integer) from public.traces as t"
        f" where t.tenant_id = %s and {which} order by t.created_at desc, t.trace_id limit 1",
        (node_id, *values),
    ).one_or_none()
    if row is None or (node_id is not None and row[1] is None):
        return None
    return ShownPlace(row[0], node_id, None if node_id is None else row[1])
