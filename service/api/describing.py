"""Values of the pipeline as the API shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from service.api.models.common import Timing
from service.api.models.context import ShownPackedCandidate
from service.api.models.search import (
    SearchMode,
    ShownHit,
    ShownNode,
    ShownOptions,
    ShownRetrieval,
    ShownScores,
    ShownShortfall,
    ShownStep,
    ShownSummary,
    ShownWeights,
)
from service.api.retrieving import Record, Retrieved
from service.api.stopwatch import Stopwatch
from service.packing import Pack
from service.pipeline import Retrieval
from service.retrieval.options import RetrievalOptions
from service.retrieval.relevance import RelevanceScale, find_band, judge_relevance
from service.retrieval.trace import StepTrace
from service.types import Candidate, Hit


def describe_summary(found: Retrieved, known: Record, *, asked: int | None = None) -> ShownSummary:
    """Say how a search went; `asked` is how many nodes were wanted, where that is a promise."""
    retrieval = found.retrieval
    mode, reason = find_mode(found, known)
    confidence = retrieval.confidence
    short = asked is not None and len(retrieval.candidates) < asked
    return ShownSummary(
        mode=mode,
        mode_reason=reason,
        shortfall=_explain_shortfall(retrieval, asked or 0) if short else None,
        confidence=confidence,
        gated=confidence is not None and confidence < known.threshold,
        intent=retrieval.intent,
        weights=ShownWeights(
            bm25=retrieval.plan.bm25_weight,
            vector=retrieval.plan.vector_weight,
            walk=retrieval.options.walk_weight,
        ),
        options=describe_options(retrieval.options),
        terms=[term.lexeme for term in known.terms],
        fallbacks=list(retrieval.fallbacks),
        cached=found.cached,
    )


def describe_options(options: RetrievalOptions) -> ShownOptions:
    """Show what a retrieval did and with which numbers."""
    prior = options.beta if options.graph_prior else 0.0
    return ShownOptions.model_validate({**asdict(options), "graph_prior_weight": prior})


def find_mode(found: Retrieved, known: Record) -> tuple[SearchMode, str | None]:
    """Say which legs ran, and why not both."""
    plan = found.retrieval.plan
    if found.keywords_reason is not None:
        return "keywords", found.keywords_reason
    if plan.vector_weight == 0:
        return "keywords", "vector_weight is 0"
    if plan.bm25_weight == 0:
        return "vectors", "bm25_weight is 0"
    if not known.terms:
        return "vectors", "the query has no searchable word"
    searched = _find_step(found.retrieval, "search")
    if searched and searched.left and all(each.vector_score is None for each in searched.left):
        return "keywords", "no node that was found has an embedding"
    return "hybrid", None


def describe_hits(found: Retrieved, known: Record) -> list[ShownHit]:
    """Show what was found, best first, each with its relevance and band."""
    scale = _measure_scale(found, known)
    return [
        _describe_hit(place, candidate, scale, known)
        for place, candidate in enumerate(found.retrieval.candidates, start=1)
    ]


def describe_scores(candidate: Candidate, *, rank: float | None = None) -> ShownScores:
    """Show what a node is ranked by; `rank` is shown where PageRank had no part in it."""
    graph = candidate.graph_score
    return ShownScores(
        final=candidate.score,
        combined=candidate.combined_score,
        bm25=candidate.bm25_score,
        vector=candidate.vector_score,
        confidence=candidate.confidence,
        graph=rank if graph is None else graph,
        cross_encoder=candidate.ce_score,
    )


def describe_hit_scores(hit: Hit) -> ShownScores:
    """Show the scores of a plain hit."""
    return ShownScores(
        final=hit.combined_score,
        combined=hit.combined_score,
        bm25=hit.bm25_score,
        vector=hit.vector_score,
        confidence=None,
        graph=None,
        cross_encoder=None,
    )


def describe_retrieval(retrieval: Retrieval) -> ShownRetrieval:
    """Show what each step did."""
    steps = () if retrieval.trace is None else retrieval.trace.steps
    return ShownRetrieval(
        steps=[ShownStep.model_validate(step) for step in steps], statement=retrieval.statement
    )


def describe_candidates(packed: Pack | None) -> list[ShownPackedCandidate]:
    """Show what packing did with each candidate."""
    items = () if packed is None else packed.trace.items
    return [ShownPackedCandidate.model_validate(item) for item in items]


def describe_timings(stopwatch: Stopwatch) -> list[Timing]:
    """Show how long each step took."""
    return [Timing(step=step, milliseconds=ms) for step, ms in stopwatch.read().items()]


def _describe_hit(
    place: int,
    candidate: Candidate,
    scale: RelevanceScale,
    known: Record,
) -> ShownHit:
    relevance = judge_relevance(candidate, scale)
    node_id = candidate.node.node_id
    terms = known.term_scores.get(node_id)
    return ShownHit(
        position=place,
        node=ShownNode.model_validate(candidate.node),
        scores=describe_scores(candidate, rank=known.ranks.get(node_id)),
        relevance=round(relevance, 6),
        band=find_band(relevance),
        terms=None if terms is None else dict(terms),
    )


def _measure_scale(found: Retrieved, known: Record) -> RelevanceScale:
    mode, _ = find_mode(found, known)
    plan = found.retrieval.plan
    return RelevanceScale(
        idf_total=sum(term.idf for term in known.terms),
        bm25_weight=0.0 if mode == "vectors" else plan.bm25_weight,
        vector_weight=0.0 if found.keywords_reason is not None else plan.vector_weight,
    )


def _explain_shortfall(retrieval: Retrieval, asked: int) -> ShownShortfall:
    searched = _find_step(retrieval, "search")
    got = len(retrieval.candidates)
    if searched is None or not searched.left:
        reason = "no searchable node passes the filters and matches"
    else:
        reason = "; ".join(_list_losses(retrieval.trace.steps if retrieval.trace else ()))
    return ShownShortfall(
        asked=asked,
        got=got,
        reason=reason or "no other node under the filters holds a query term or has an embedding",
    )


def _list_losses(steps: Sequence[StepTrace]) -> list[str]:
    return [
        f"{step.step} left out {len(step.drops)} ({step.drops[0].reason})"
        for step in steps
        if step.drops and step.step != "cut"
    ]


def _find_step(retrieval: Retrieval, name: str) -> StepTrace | None:
    steps = () if retrieval.trace is None else retrieval.trace.steps
    return next((step for step in steps if step.step == name), None)
