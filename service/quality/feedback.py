"""Feedback on what was shown: found by its trace or its question, kept once, so often an hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from uuid import UUID, uuid4

from sqlalchemy import Engine

from service.db.engine import tenant_transaction
from service.db.feedback import (
    Feedback,
    ShownPlace,
    find_newest_shown,
    find_shown,
    find_wait,
    store_feedback,
)
from service.errors import InvalidInput, NotFound, RateLimited
from service.quality.recorder import Recorder
from service.quality.recording import PYTHON, hash_question, read_recorded
from service.types import Signal

WINDOW = timedelta(hours=1)
MOST_PER_HOUR = 600


@dataclass(frozen=True, slots=True)
class Rated:
    """What feedback is about: a trace, or the caller's newest trace of a question; one node of it.

    node_id: None for the whole.
    """

    trace_id: UUID | None = None
    query: str | None = None
    node_id: int | None = None


def give_feedback(
    engine: Engine,
    tenant_id: str,
    *,
    rated: Rated,
    caller: str,
    signal: Signal,
    note: str | None = None,
    key_id: str = PYTHON,
    most_per_hour: int = MOST_PER_HOUR,
    recorder: Recorder | None = None,
) -> Feedback:
    """Keep what a caller thinks of what was shown; said twice it is kept once."""
    if (rated.trace_id is None) == (rated.query is None):
        raise InvalidInput("Feedback is about a trace_id or a query: give one of them.")
    _check_cap(engine, tenant_id, caller=caller, most=most_per_hour)
    if recorder is not None and rated.query is not None:
        recorder.flush()  # else an older trace of the question would be taken for the newest
    place = read_recorded(
        lambda: _find_place(engine, tenant_id, rated=rated, caller=caller), recorder=recorder
    )
    given = Feedback(uuid4(), place, key_id=key_id, caller=caller, signal=signal, note=note)
    with tenant_transaction(engine, [tenant_id]) as connection:
        return store_feedback(connection, tenant_id, feedback=given)


def _check_cap(engine: Engine, tenant_id: str, *, caller: str, most: int) -> None:
    with tenant_transaction(engine, [tenant_id]) as connection:
        wait = find_wait(connection, tenant_id, caller=caller, most=most, window=WINDOW)
    if wait > 0:
        error = RateLimited(
            f"One caller may give feedback {most} times an hour.",
            hint=f"Try again in {ceil(wait)} s.",
        )
        error.retry_after = wait
        raise error


def _find_place(engine: Engine, tenant_id: str, *, rated: Rated, caller: str) -> ShownPlace:
    with tenant_transaction(engine, [tenant_id]) as connection:
        if rated.trace_id is not None:
            place = find_shown(
                connection, tenant_id, trace_id=rated.trace_id, node_id=rated.node_id
            )
        else:
            place = find_newest_shown(
                connection,
                tenant_id,
                query_sha256=hash_question(rated.query or ""),
                caller=caller,
                node_id=rated.node_id,
            )
    if place is None:
        # One answer for what is unknown, another tenant's and not shown: none tells which it is.
        raise NotFound(
            "There is no such trace, or it did not show this node.",
            hint="Give feedback with the trace_id and a node_id of one response.",
        )
    return place
