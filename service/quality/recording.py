"""What goes on record of a retrieval: what was shown, or how it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine

from service.db.candidates import read_tenant_states
from service.db.engine import tenant_transaction
from service.db.traces import StoredTrace, TraceKind, store_questions, store_traces
from service.errors import InvalidInput, NotFound
from service.pipeline import Retrieval
from service.quality.recorder import Recorder
from service.retrieval.experiment import Assignment
from service.retrieval.intent import detect_intent
from service.retrieval.request import RetrievalRequest, find_assignment

LONGEST_CALLER = 200
PYTHON = "python"
"""The key_id of what is recorded without an API key."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A trace, and the words of its question where they are kept."""

    trace: StoredTrace
    question: str | None


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A retrieval that failed: its trace without a variant, and what decides the variant."""

    trace: StoredTrace
    request: RetrievalRequest


def name_caller(tenant_id: str, label: str) -> str:
    """Return what is kept of the label of an end user: a short hash that is the tenant's alone."""
    if not label.strip() or len(label) > LONGEST_CALLER:
        raise InvalidInput(
            f"A caller is named by 1 to {LONGEST_CALLER} characters.",
            hint="Any label that stays the same for one person will do.",
        )
    return sha256(f"{tenant_id}\x1f{label.strip()}".encode("utf-8", "replace")).hexdigest()[:16]


def hash_question(text: str) -> bytes:
    """Return what a trace keeps of a question."""
    return sha256(text.encode("utf-8", "replace")).digest()


def describe_shown(
    retrieval: Retrieval,
    *,
    kind: TraceKind,
    caller: str,
    shown: Sequence[tuple[int, float]],
    timings: Mapping[str, float],
    key_id: str = PYTHON,
    more_settings: Mapping[str, object] | None = None,
) -> StoredTrace:
    """Return the trace of nodes that are shown with their scores, in this order."""
    assignment, teams = retrieval.assignment, None
    if assignment is not None and assignment.variant == "interleaved":
        # What packing added to a section is neither's choice.
        teams = [retrieval.teams.get(node_id, "") for node_id, _ in shown]
    return StoredTrace(
        trace_id=uuid4(),
        kind=kind,
        key_id=key_id,
        caller=caller,
        query_sha256=hash_question(retrieval.text),
        settings={
            **asdict(retrieval.options),
            "dataset_name": retrieval.plan.dataset_name,
            **(more_settings or {}),
        },
        node_ids=[node_id for node_id, _ in shown],
        scores=[score for _, score in shown],
        timings=timings,
        intent=retrieval.intent,
        cached=retrieval.trace is not None and retrieval.trace.cached,
        experiment_id=None if assignment is None else assignment.experiment_id,
        variant=None if assignment is None else assignment.variant,
        teams=teams,
    )


def describe_failed(
    request: RetrievalRequest,
    *,
    kind: TraceKind,
    error: str,
    timings: Mapping[str, float],
    key_id: str = PYTHON,
) -> FailedRecord:
    """Return what goes on record of a retrieval that ended with an error code."""
    trace = StoredTrace(
        trace_id=uuid4(),
        kind=kind,
        key_id=key_id,
        caller=request.caller or "",
        query_sha256=hash_question(request.text),
        settings={"max_results": request.max_results, "dataset_name": request.dataset_name},
        node_ids=(),
        scores=(),
        timings=timings,
        error=error,
    )
    return FailedRecord(trace, request)


def write_shown(connection: Connection, tenant_id: str, records: Sequence[ShownRecord]) -> None:
    """Write traces, and the questions that may be kept; for a Recorder."""
    store_traces(connection, tenant_id, traces=[each.trace for each in records])
    questions = {
        each.trace.query_sha256: each.question for each in records if each.question is not None
    }
    if questions:
        store_questions(connection, tenant_id, questions=questions)


def write_failed(connection: Connection, tenant_id: str, records: Sequence[FailedRecord]) -> None:
    """Write failures, each under the variant it would have been; for a Recorder."""
    states = read_tenant_states(connection, [tenant_id])
    traces = [_assign(each.trace, find_assignment(each.request, states)) for each in records]
    store_traces(connection, tenant_id, traces=traces)


def record_shown(
    engine: Engine,
    retrieval: Retrieval,
    *,
    caller: str,
    kind: TraceKind = "search",
    shown: Sequence[tuple[int, float]] | None = None,
    keep_question: bool = True,
) -> UUID:
    """Write down at once what a retrieval of one tenant shows, and return the id of its trace.

    caller: as name_caller makes it. shown: nodes with their scores, where not all candidates are.
    """
    if len(retrieval.plan.tenant_ids) != 1:
        raise InvalidInput("A trace belongs to one tenant.", hint="Search each tenant by itself.")
    if shown is None:
        shown = [(each.node.node_id, each.score) for each in retrieval.candidates]
    trace = describe_shown(
        retrieval, kind=kind, caller=caller, shown=shown, timings=_read_timings(retrieval)
    )
    record = ShownRecord(trace, retrieval.text if keep_question else None)
    _write_at_once(engine, retrieval.plan.tenant_ids[0], record)
    return trace.trace_id


def record_results(
    engine: Engine,
    tenant_id: str,
    *,
    query: str,
    results: Sequence[Mapping[str, Any]],
    caller: str,
    keep_question: bool = True,
) -> UUID:
    """Write down at once which results of an agent are shown, and return the id of their trace."""
    trace = StoredTrace(
        trace_id=uuid4(),
        kind="search",
        key_id=PYTHON,
        caller=caller,
        query_sha256=hash_question(query),
        settings={},
        node_ids=[int(each["node_id"]) for each in results],
        scores=[float(each["score"]) for each in results],
        timings={},
        intent=detect_intent(query),
    )
    _write_at_once(engine, tenant_id, ShownRecord(trace, query if keep_question else None))
    return trace.trace_id


def read_recorded(read: Callable[[], T], *, recorder: Recorder | None) -> T:
    """Return what `read` finds, which this process or another one may just be writing.

    Whatever is not there is looked for in the same way and for the same time, whoever owns it.
    """
    if recorder is None:
        return read()
    for wait in (recorder.flush, recorder.wait_for_others):
        try:
            return read()
        except NotFound:
            wait()
    return read()


def _assign(trace: StoredTrace, assignment: Assignment | None) -> StoredTrace:
    if assignment is None:
        return trace
    return replace(
        trace, experiment_id=assignment.experiment_id, variant=assignment.variant, teams=()
    )


def _write_at_once(engine: Engine, tenant_id: str, record: ShownRecord) -> None:
    with tenant_transaction(engine, [tenant_id]) as connection:
        write_shown(connection, tenant_id, [record])


def _read_timings(retrieval: Retrieval) -> dict[str, float]:
    if retrieval.trace is None:
        return {}
    timings = {step.step: step.milliseconds for step in retrieval.trace.steps}
    return {**timings, "total": retrieval.trace.milliseconds}
