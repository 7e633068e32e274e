"""What is on record: traces, feedback, and what left the machine."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from service.api.access import AdminRoute, FromAccess, SearchRoute, describe_headers
from service.api.cursors import LONGEST, make_cursor, read_cursor
from service.api.models.common import Timing
from service.api.models.records import (
    GivenFeedback,
    ShownEgress,
    ShownEgressCall,
    ShownFeedback,
    ShownTrace,
    ShownTracedHit,
)
from service.api.state import FromServices
from service.db.egress import EgressPlace, list_egress_calls, read_egress_policies
from service.db.engine import tenant_transaction
from service.db.traces import StoredTrace, read_trace
from service.errors import InvalidInput
from service.quality.feedback import Rated
from service.quality.feedback import give_feedback as keep_feedback
from service.quality.recording import read_recorded

router = APIRouter(
    prefix="/v1",
    tags=["records"],
    route_class=SearchRoute,
    dependencies=[Depends(describe_headers)],
)
admin = APIRouter(
    prefix="/v1", tags=["records"], route_class=AdminRoute, dependencies=[Depends(describe_headers)]
)


@router.get("/traces/{trace_id}")
def read_stored_trace(trace_id: UUID, access: FromAccess, services: FromServices) -> ShownTrace:
    """Read what was shown, by the trace_id of its answer."""

    def read() -> StoredTrace:
        with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
            return read_trace(connection, access.tenant_id, trace_id=trace_id)

    return _describe(read_recorded(read, recorder=services.recorder))


@router.post("/feedback", status_code=201)
def give_feedback(
    given: GivenFeedback, access: FromAccess, services: FromServices
) -> ShownFeedback:
    """Say what a person thinks of what was shown, or of one node of it; twice counts once."""
    stored = keep_feedback(
        services.database.engine,
        access.tenant_id,
        rated=Rated(given.trace_id, given.query, given.node_id),
        caller=access.caller,
        signal=given.signal,
        note=given.note,
        key_id=access.key_id,
        most_per_hour=services.settings.contextforge_feedback_per_hour,
        recorder=services.recorder,
    )
    return ShownFeedback(
        feedback_id=str(stored.feedback_id),
        trace_id=str(stored.place.trace_id),
        node_id=stored.place.node_id,
        position=stored.place.position,
        signal=stored.signal,
    )


@admin.get("/egress")
def read_egress(
    access: FromAccess,
    services: FromServices,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    cursor: Annotated[str | None, Query(max_length=LONGEST)] = None,
) -> ShownEgress:
    """Read what may be sent to Claude for the tenant, and what was."""
    place = _read_place(cursor)
    tenants = [access.tenant_id]
    with tenant_transaction(services.database.engine, tenants) as connection:
        [policy] = read_egress_policies(connection, tenants)
        calls = list_egress_calls(connection, tenants, limit=limit + 1, after=place)
    shown = calls[:limit]
    more = len(calls) > limit
    return ShownEgress(
        policy=policy.policy,
        changed_at=policy.changed_at,
        calls=[ShownEgressCall.model_validate(call) for call in shown],
        next_cursor=(
            make_cursor(shown[-1].started_at.isoformat(), shown[-1].call_id) if more else None
        ),
    )


def _read_place(cursor: str | None) -> EgressPlace | None:
    place = read_cursor(cursor, str, str)
    if place is None:
        return None
    try:
        return datetime.fromisoformat(str(place[0])), str(UUID(str(place[1])))
    except ValueError as exc:
        raise InvalidInput("This cursor is not one of ours.") from exc


def _describe(trace: StoredTrace) -> ShownTrace:
    teams = trace.teams or [""] * len(trace.node_ids)
    shown = zip(trace.node_ids, trace.scores, teams, strict=True)
    return ShownTrace(
        trace_id=str(trace.trace_id),
        kind=trace.kind,
        created_at=trace.created_at,
        key_id=trace.key_id,
        query_sha256=trace.query_sha256.hex(),
        settings=dict(trace.settings),
        hits=[
            ShownTracedHit(position=place, node_id=node_id, score=score, team=team or None)
            for place, (node_id, score, team) in enumerate(shown, start=1)
        ],
        timings=[Timing(step=step, milliseconds=ms) for step, ms in trace.timings.items()],
        intent=trace.intent,
        cached=trace.cached,
        error=trace.error,
        experiment_id=None if trace.experiment_id is None else str(trace.experiment_id),
        variant=trace.variant,
    )
