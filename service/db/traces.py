"""What was shown to whom, and what people thought of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.errors import InvalidInput, NotFound

TraceKind = Literal["search", "context", "answer"]


@dataclass(frozen=True, slots=True)
class TraceDraft:
    """What was shown: nodes in their order with their scores, and how long each step took."""

    trace_id: UUID
    kind: TraceKind
    key_id: str
    query_sha256: bytes
    settings: Mapping[str, Any]
    node_ids: Sequence[int]
    scores: Sequence[float]
    timings: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StoredTrace(TraceDraft):
    """A trace as it is read."""

    created_at: datetime


@dataclass(frozen=True, slots=True)
class FeedbackDraft:
    """What somebody thinks of a trace, or of one node in it."""

    feedback_id: UUID
    trace_id: UUID
    key_id: str
    signal: str
    node_id: int | None = None
    note: str | None = None


def store_trace(connection: Connection, tenant_id: str, *, trace: TraceDraft) -> None:
    """Keep what was shown; the last second may be lost in a crash, which is worth its speed."""
    connection.exec_driver_sql("set local synchronous_commit = off")
    connection.exec_driver_sql(
        "insert into public.traces (tenant_id, trace_id, kind, key_id, query_sha256, settings,"
        " node_ids, scores, steps, milliseconds) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            tenant_id,
            trace.trace_id,
            trace.kind,
            trace.key_id,
            trace.query_sha256,
            Jsonb(dict(trace.settings)),
            list(trace.node_ids),
            list(trace.scores),
            list(trace.timings),
            list(trace.timings.values()),
        ),
    )


def read_trace(connection: Connection, tenant_id: str, *, trace_id: UUID) -> StoredTrace:
    """Return a trace; NotFound if it is nobody's, another tenant's, or forgotten."""
    row = connection.exec_driver_sql(
        "select trace_id, kind, key_id, query_sha256, settings, node_ids, scores, steps,"
        " milliseconds, created_at from public.traces where tenant_id = %s and trace_id = %s",
        (tenant_id, trace_id),
    ).one_or_none()
    if row is None:
        raise NotFound(f'There is no trace "{trace_id}".', hint="Traces are forgotten in time.")
    columns = dict(row._mapping)
    steps, milliseconds = columns.pop("steps"), columns.pop("milliseconds")
    return StoredTrace(**columns, timings=dict(zip(steps, milliseconds, strict=True)))


def store_feedback(connection: Connection, tenant_id: str, *, feedback: FeedbackDraft) -> None:
    """Keep feedback on a trace of the tenant; a node must be one that was shown."""
    trace = read_trace(connection, tenant_id, trace_id=feedback.trace_id)
    if feedback.node_id is not None and feedback.node_id not in trace.node_ids:
        raise InvalidInput(f"Node {feedback.node_id} was not shown in this trace.")
    connection.exec_driver_sql(
        "insert into public.feedback"
        " (tenant_id, feedback_id, trace_id, key_id, signal, node_id, note)"
        " values (%s, %s, %s, %s, %s, %s, %s)",
        (
            tenant_id,
            feedback.feedback_id,
            feedback.trace_id,
            feedback.key_id,
            feedback.signal,
            feedback.node_id,
            feedback.note,
        ),
    )


def prune_traces(connection: Connection, tenant_id: str, *, older_than: timedelta) -> int:
    """Forget a tenant's traces that are older than that; return how many."""
    pruned = connection.exec_driver_sql(
        "select contextforge.prune_traces(%s, %s)", (tenant_id, older_than)
    ).scalar_one()
    return int(pruned)
