"""A retrieval for a caller: asked, judged, and put on record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from service.api.access import Access
from service.api.models.search import GivenOptions, GivenSearch
from service.api.state import Services
from service.api.stopwatch import Stopwatch, start_stopwatch
from service.db.engine import tenant_transaction
from service.db.terms import TermWeight, score_terms, weigh_terms
from service.db.traces import TraceKind
from service.errors import EmbedderMismatch, ModelUnavailable, ServiceError
from service.pipeline import Retrieval
from service.quality.recording import (
    ShownRecord,
    describe_failed,
    describe_shown,
    write_failed,
    write_shown,
)
from service.retrieval.request import RetrievalRequest
from service.types import SearchFilters

# Whoever searches wants to see what is there: the gate only says what it thinks.
SEARCH_CHANGES: Mapping[str, object] = {"multidoc": False, "confidence_threshold": 0.0}
_KEYWORDS_ALONE = {"bm25_weight": 1.0, "vector_weight": 0.0}
_FIRST_STEPS = ("prepare", "embed")


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a question found, and why it was not embedded, if so."""

    request: RetrievalRequest
    retrieval: Retrieval
    keywords_reason: str | None

    @property
    def cached(self) -> bool:
        """Whether it was remembered."""
        return self.retrieval.trace is not None and self.retrieval.trace.cached


@dataclass(frozen=True, slots=True)
class Record:
    """What was written down, and what only the database knows about the question."""

    trace_id: UUID
    terms: tuple[TermWeight, ...]
    term_scores: Mapping[int, Mapping[str, float]]
    ranks: Mapping[int, float]
    threshold: float


def make_request(
    given: GivenSearch, access: Access, *, changes: Mapping[str, object] | None = None
) -> RetrievalRequest:
    """Return what is asked of the pipeline; groups are the key's, never the caller's words."""
    filters = SearchFilters(
        lang=given.filters.lang,
        space_id=given.filters.space_id,
        docs=tuple(given.filters.docs),
        acl_groups=access.acl_groups,
        metadata=given.filters.metadata,
    )
    return RetrievalRequest(
        given.query,
        (access.tenant_id,),
        max_results=given.max_results,
        node_types=None if given.node_types is None else tuple(given.node_types),
        dataset_name=given.dataset_name,
        filters=filters,
        changes={**(changes or {}), **read_changes(given.options), "trace": True},
        caller=access.caller,
    )


def read_changes(options: GivenOptions) -> dict[str, object]:
    """Return the options a caller states by the names of the pipeline."""
    changes: dict[str, Any] = options.model_dump(exclude_none=True)
    weight = changes.pop("graph_prior_weight", None)
    if weight is not None:
        changes |= {"graph_prior": weight > 0, "alpha": 1 - weight, "beta": weight}
    return changes


@contextmanager
def measured(
    services: Services, access: Access, request: RetrievalRequest, *, kind: TraceKind
) -> Iterator[Stopwatch]:
    """Measure a retrieval, and put it on record where the service fails at it."""
    with start_stopwatch() as stopwatch:
        try:
            yield stopwatch
        except Exception as exc:
            error = exc if isinstance(exc, ServiceError) else ServiceError(str(exc))
            if error.status >= 500:  # less is the caller's doing
                failed = describe_failed(
                    request,
                    kind=kind,
                    error=error.code,
                    timings=stopwatch.read(),
                    key_id=access.key_id,
                )
                services.recorder.submit(access.tenant_id, write_failed, failed)
                services.rollbacks.note_search(access.tenant_id)
            raise


def retrieve(services: Services, request: RetrievalRequest, stopwatch: Stopwatch) -> Retrieved:
    """Return what a question finds; by keywords alone where it cannot be embedded."""
    with stopwatch.measure("prepare"):
        try:
            found = Retrieved(request, services.pipeline.retrieve(request), None)
        except (EmbedderMismatch, ModelUnavailable) as exc:
            changes = {**request.changes, **_KEYWORDS_ALONE}
            plain = replace(request, changes=changes, keywords_only=True)
            found = Retrieved(plain, services.pipeline.retrieve(plain), exc.message)
    note_steps(found.retrieval, stopwatch)
    return found


def note_steps(retrieval: Retrieval, stopwatch: Stopwatch) -> None:
    """Count the steps of a retrieval apart from what it took as a whole, so far `prepare`."""
    trace = retrieval.trace
    taken = {} if trace is None or trace.cached else _sum_steps(trace.steps)
    known = stopwatch.steps
    rest = known.get("prepare", 0.0) - known.get("embed", 0.0) - sum(taken.values())
    first = {"prepare": max(rest, 0.0), "embed": known.get("embed", 0.0)}
    others = {name: value for name, value in known.items() if name not in _FIRST_STEPS}
    stopwatch.steps = {**first, **taken, **others}


def record(
    services: Services,
    access: Access,
    found: Retrieved,
    *,
    kind: TraceKind,
    shown: Sequence[tuple[int, float]],
    stopwatch: Stopwatch,
    explain: bool = False,
) -> Record:
    """Have written down what is about to be shown, and look up how the words were weighed."""
    request, tenants = found.request, [access.tenant_id]
    node_ids = [node_id for node_id, _ in shown]
    with (
        stopwatch.measure("record"),
        tenant_transaction(services.database.engine, tenants) as connection,
    ):
        terms = weigh_terms(connection, tenants, text=request.text, lang=request.filters.lang)
        scores = score_terms(connection, tenants, terms=terms, node_ids=node_ids) if explain else {}
        ranks = services.ranks.read_ranks(connection, tenants, node_ids).shares if explain else {}
    timings = stopwatch.read()
    trace = describe_shown(
        found.retrieval,
        kind=kind,
        caller=access.caller,
        shown=shown,
        timings=timings,
        key_id=access.key_id,
        more_settings={
            "max_results": request.max_results,
            "keywords_only": request.keywords_only,
        },
    )
    question = request.text if services.settings.contextforge_keep_questions else None
    services.recorder.submit(access.tenant_id, write_shown, ShownRecord(trace, question))
    if trace.experiment_id is not None:
        services.rollbacks.note_search(access.tenant_id)
    audited = services.auditor.choose(request, cached=found.cached)
    if audited is not None:
        services.recorder.submit(access.tenant_id, services.auditor.write, audited)
    services.scrapes.know(access.tenant_id)
    services.metrics.count_retrieval(timings, cached=found.cached)
    retrieval = found.retrieval
    known = {**retrieval.own_settings, **retrieval.tried_settings}
    threshold = known.get("context_confidence_threshold")
    if not isinstance(threshold, float):
        threshold = services.settings.context_confidence_threshold
    return Record(trace.trace_id, tuple(terms), scores, ranks, threshold)


def _sum_steps(steps: Iterable[Any]) -> dict[str, float]:
    taken: dict[str, float] = {}
    for step in steps:
        taken[step.step] = taken.get(step.step, 0.0) + step.milliseconds
    return taken
