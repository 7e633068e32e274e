"""What was shown to whom, and what people thought of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.errors import NotFound
from service.types import Variant

TraceKind = Literal["search", "context", "answer"]

_COLUMNS = (
    "trace_id, kind, created_at, key_id, caller, query_sha256, settings, node_ids, scores,"
    " intent, cached, error, experiment_id, variant, teams, steps, milliseconds"
)
_PLACES = ", ".join("%s" for _ in _COLUMNS.split(","))


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """What was shown: nodes in their order with their scores, and how long each step took.

    caller: who asked, as a short hash or the id of a key.
    error: the code of what went wrong; then nothing was shown.
    teams: for each node of an interleaved list, the variant that chose it; '' for neither.
    """

    trace_id: UUID
    kind: TraceKind
    key_id: str
    caller: str
    query_sha256: bytes
    settings: Mapping[str, Any]
    node_ids: Sequence[int]
    scores: Sequence[float]
    timings: Mapping[str, float]
    intent: str | None = None
    cached: bool = False
    error: str | None = None
    experiment_id: UUID | None = None
    variant: Variant | None = None
    teams: Sequence[str] | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def store_traces(connection: Connection, tenant_id: str, *, traces: Sequence[StoredTrace]) -> None:
    """Keep what was shown."""
    connection.exec_driver_sql(
        f"insert into public.traces (tenant_id, {_COLUMNS}) values (%s, {_PLACES})",
        [_list_values(tenant_id, trace) for trace in traces],
    )


def store_questions(
    connection: Connection, tenant_id: str, *, questions: Mapping[bytes, str]
) -> None:
    """Keep the words of questions by their SHA-256, with when each was last asked."""
    # In one order for everybody: two batches with the same questions must not wait for each other.
    connection.exec_driver_sql(
        "insert into public.asked_questions as q (tenant_id, query_sha256, question)"
        " select %s, given.query_sha256, given.question"
        " from unnest(%s::bytea[], %s::text[]) as given (query_sha256, question)"
        " order by given.query_sha256"
        " on conflict (tenant_id, query_sha256) do update set asked_at = clock_timestamp()",
        (tenant_id, list(questions), list(questions.values())),
    )


def read_trace(connection: Connection, tenant_id: str, *, trace_id: UUID) -> StoredTrace:
    """Return a trace; NotFound if it is nobody's, another tenant's, or forgotten."""
    row = connection.exec_driver_sql(
        f"select {_COLUMNS} from public.traces where tenant_id = %s and trace_id = %s",
        (tenant_id, trace_id),
    ).one_or_none()
    if row is None:
        raise NotFound(f'There is no trace "{trace_id}".', hint="Traces are forgotten in time.")
    columns = dict(row._mapping)
    steps, milliseconds = columns.pop("steps"), columns.pop("milliseconds")
    return StoredTrace(**columns, timings=dict(zip(steps, milliseconds, strict=True)))


def prune_traces(connection: Connection, tenant_id: str, *, older_than: timedelta) -> int:
    """Forget a tenant's traces that are older than that; return how many."""
    pruned = connection.exec_driver_sql(
        "select contextforge.prune_traces(%s, %s)", (tenant_id, older_than)
    ).scalar_one()
    return int(pruned)


def _list_values(tenant_id: str, trace: StoredTrace) -> tuple[object, ...]:
    return (
        tenant_id,
        trace.trace_id,
        trace.kind,
        trace.created_at,
        trace.key_id,
        trace.caller,
        trace.query_sha256,
        Jsonb(dict(trace.settings)),
        list(trace.node_ids),
        list(trace.scores),
        trace.intent,
        trace.cached,
        trace.error,
        trace.experiment_id,
        trace.variant,
        None if trace.teams is None else list(trace.teams),
        list(trace.timings),
        list(trace.timings.values()),
    )
