"""Fusion in memory: what hybrid_search_nodes does with the candidates of its legs (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.types import Fusion

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FusionPoint:
    """One way to fuse."""

    fusion: Fusion
    keyword_weight: float
    vector_weight: float
    rrf_k: int = 60


@dataclass(frozen=True, slots=True)
class FusionCandidates:
    """What both legs found for a question, by rising node id.

    A rank is infinite where the leg does not have the node; both scores are known all the same,
    the cosine is nan without an embedding.
    """

    node_ids: Ints
    keyword_ranks: Floats
    vector_ranks: Floats
    bm25_scores: Floats
    cosines: Floats


@dataclass(frozen=True, slots=True)
class FusedNodes:
    """Node ids and combined scores, best first, and the place of each among the candidates."""

    node_ids: Ints
    scores: Floats
    places: Ints


def fuse_candidates(
    candidates: FusionCandidates, point: FusionPoint, *, top_k: int | None = None
) -> FusedNodes:
    """Rank the candidates; a leg without weight or without candidates did not run."""
    ran = _without_idle_legs(point, candidates)
    found = np.zeros(len(candidates.node_ids), dtype=bool)
    if ran.keyword_weight:
        found |= np.isfinite(candidates.keyword_ranks)
    if ran.vector_weight:
        found |= np.isfinite(candidates.vector_ranks)
    places = np.flatnonzero(found)
    if not len(places):
        return FusedNodes(candidates.node_ids[:0], candidates.cosines[:0], places)
    combine = _combine_ranks if ran.fusion == "rrf" else _combine_scores
    scores = combine(candidates, places, point=ran)
    # Stable over rising ids: ties break on node_id.
    order = np.argsort(-scores, kind="stable")[:top_k]
    return FusedNodes(candidates.node_ids[places[order]], scores[order], places[order])


def _without_idle_legs(point: FusionPoint, candidates: FusionCandidates) -> FusionPoint:
    by_keyword = np.isfinite(candidates.keyword_ranks).any()
    by_vector = np.isfinite(candidates.vector_ranks).any()
    return replace(
        point,
        keyword_weight=point.keyword_weight if by_keyword else 0.0,
        vector_weight=point.vector_weight if by_vector else 0.0,
    )


def _combine_ranks(candidates: FusionCandidates, places: Ints, *, point: FusionPoint) -> Floats:
    # In the order of the SQL function, so that rounding makes and breaks no other ties.
    first = point.rrf_k + 1.0
    by_keyword = point.keyword_weight * (first / (point.rrf_k + candidates.keyword_ranks[places]))
    by_vector = point.vector_weight * (first / (point.rrf_k + candidates.vector_ranks[places]))
    return np.asarray((by_keyword + by_vector) / (point.keyword_weight + point.vector_weight))


def _combine_scores(candidates: FusionCandidates, places: Ints, *, point: FusionPoint) -> Floats:
    total = _share(point.keyword_weight, candidates.bm25_scores[places])
    total = total + _share(point.vector_weight, candidates.cosines[places] + 1)
    return np.asarray(total / (point.keyword_weight + point.vector_weight))


def _share(weight: float, scores: Floats) -> Floats:
    """The weight times each score's share of the highest; an unknown score adds nothing."""
    known = np.nan_to_num(scores, nan=0.0)
    highest = known.max()
    return weight * known / highest if highest > 0 else np.zeros(len(known))
