"""Search: all phrasings in one statement, duplicates collapsed, best first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from service.db.candidates import Found, Phrasing, SearchPlan, TenantState, search_pools
from service.db.engine import tenant_transaction
from service.embedding import Embedder
from service.errors import EmbedderMismatch, ServiceError
from service.retrieval.expand import shorten_for_log
from service.retrieval.request import Frame
from service.retrieval.trace import Drop, StepResult
from service.types import Candidate, Node, ScoredNode

logger = logging.getLogger(__name__)

SearchAll = Callable[[Sequence[Phrasing]], list[Found]]


@dataclass(frozen=True, slots=True)
class Pool:
    """What the steps after a search work on, best first, and hits beyond that may still rise."""

    candidates: list[Candidate]
    beyond: tuple[ScoredNode, ...] = ()


def find_candidates(engine: Engine, frame: Frame, *, phrasings: Sequence[Phrasing]) -> list[Found]:
    """Return what each phrasing finds, best first."""
    return search_phrasings(phrasings, lambda some: _search(engine, some, plan=frame.plan))


def fuse_phrasings(found: Sequence[Found]) -> Pool:
    """Return each node once, with its best score."""
    candidates = merge_candidates([each.candidates for each in found])
    known = {each.node.node_id for each in candidates}
    scores: dict[int, float] = {}
    for node in (node for each in found for node in each.beyond if node.node_id not in known):
        scores[node.node_id] = max(node.score, scores.get(node.node_id, 0.0))
    beyond = (ScoredNode(node_id, score) for node_id, score in scores.items())
    return Pool(candidates, tuple(beyond))


def describe_search_step(
    found: Sequence[Found], *, frame: Frame, phrasings: Sequence[str]
) -> StepResult:
    """Return what a trace says of the search."""
    pool = fuse_phrasings(found)
    kept = {each.node.node_id for each in pool.candidates}
    doubles = {each.node.node_id for some in found for each in some.candidates} - kept
    return StepResult(
        pool.candidates,
        tuple(Drop(node_id, "the same place of the same document") for node_id in sorted(doubles)),
        notes={
            "intent": frame.intent,
            "phrasings": list(phrasings),
            "bm25_weight": frame.plan.bm25_weight,
            "vector_weight": frame.plan.vector_weight,
            "fusion": frame.plan.fusion,
            "top_k": frame.plan.top_k,
        },
    )


def check_embedder(embedder: Embedder, states: Sequence[TenantState]) -> None:
    """Refuse to compare vectors of two models: their cosines mean nothing."""
    for state in states:
        if state.embedder_version not in (None, embedder.version):
            raise EmbedderMismatch(
                f'Tenant "{state.tenant_id}" is embedded by {state.embedder_version}, '
                f"questions by {embedder.version}.",
                hint="Set EMBEDDING_MODEL to the tenant's model, or run contextforge reembed.",
            )


def _search(engine: Engine, phrasings: Sequence[Phrasing], *, plan: SearchPlan) -> list[Found]:
    with tenant_transaction(engine, plan.tenant_ids) as connection:
        return search_pools(connection, phrasings, plan=plan)


def embed_phrasings(embedder: Embedder, texts: Sequence[str]) -> list[Phrasing]:
    """Embed all phrasings in one batch."""
    vectors = embedder.embed_queries(texts)
    return [Phrasing(text, vector) for text, vector in zip(texts, vectors, strict=True)]


def search_phrasings(phrasings: Sequence[Phrasing], search: SearchAll) -> list[Found]:
    """Search with all phrasings at once; if that fails, with each alone, skipping what fails."""
    try:
        return search(phrasings)
    except ServiceError:
        if len(phrasings) == 1:
            raise
    found: list[Found] = []
    failure: ServiceError | None = None
    for phrasing in phrasings:
        try:
            found += search([phrasing])
        except ServiceError as exc:
            failure = exc
            log_failed_search(phrasing.text, exc)
    if failure is not None and not found:
        raise failure
    return found


def log_failed_search(text: str, reason: Exception) -> None:
    """Say that one phrasing was skipped."""
    logger.warning("Search for %r failed and is skipped: %s", shorten_for_log(text), reason)


def merge_candidates(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return each node once, with its best score; best first, ties by node id.

    The same place of the same document, stored twice, counts as one node.
    """
    ordered = sorted(
        (candidate for found in lists for candidate in found),
        key=lambda each: (-each.score, each.node.node_id),
    )
    seen: set[Hashable] = set()
    merged = []
    for candidate in ordered:
        keys = set(_identities(candidate.node))
        if not keys & seen:
            merged.append(candidate)
        seen |= keys
    return merged


def _identities(node: Node) -> Iterator[Hashable]:
    yield node.node_id
    place = (node.section_path, node.order_index, node.header)
    if node.url is not None:
        yield (node.tenant_id, node.url, place)
    if node.parent_id is not None and node.order_index is not None:
        yield (node.tenant_id, node.parent_id, node.order_index)
