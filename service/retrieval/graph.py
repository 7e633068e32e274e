"""What links say about nodes, in numbers: PageRank, a walk from a few seeds, blending (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from service.types import Candidate, Links, ScoredNode

DAMPING = 0.85
# Chosen on half of the questions of a two-hop set (docs/explanation/links.md).
WALK_SEEDS = 4
WALK_WEIGHT = 0.7

_TOLERANCE = 1e-10  # of the sum of all changes in one round
_MOST_ROUNDS = 200
_WALK_ROUNDS = 10
_RRF_K = 60

Basis = Literal["similarity", "score"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PageRanks:
    """Nodes that have links, in order, and their ranks, which sum to 1."""

    node_ids: NDArray[np.int32]
    ranks: Floats


def compute_pagerank(links: Links, *, damping: float = DAMPING) -> PageRanks:
    """Rank the linked nodes by power iteration; a node without outgoing links gives to all."""
    node_ids, sources, targets = _number_nodes(links)
    count = len(node_ids)
    if not count:
        return PageRanks(node_ids, np.zeros(0))
    shares = _build_shares(sources, targets, weights=links.weights, count=count)
    dangling = np.ones(count, dtype=np.bool_)
    dangling[sources] = False
    ranks = np.full(count, 1 / count)
    for _ in range(_MOST_ROUNDS):
        spread = (1 - damping + damping * ranks[dangling].sum()) / count
        following = damping * (shares @ ranks) + spread
        change = np.abs(following - ranks).sum()
        ranks = following
        if change < _TOLERANCE:
            break
    return PageRanks(node_ids, ranks / ranks.sum())


def walk_links(links: Links, seeds: Mapping[int, float]) -> list[ScoredNode]:
    """Return where a walk that keeps returning to the seeds spends its time, best first.

    Links are walked in both directions; where there are none, there is no walk.
    """
    if not len(links.sources) or not any(seeds.values()):
        return []
    node_ids, sources, targets = _number_nodes(links, alone=list(seeds))
    start = np.array([seeds.get(node_id, 0.0) for node_id in node_ids.tolist()])
    start /= start.sum()
    shares = _build_shares(
        np.concatenate([sources, targets]),
        np.concatenate([targets, sources]),
        weights=np.concatenate([links.weights, links.weights]),
        count=len(node_ids),
    )
    time = start
    for _ in range(_WALK_ROUNDS):
        time = (1 - DAMPING) * start + DAMPING * (shares @ time)
    reached = np.flatnonzero(time)
    # node_ids are in order, and a stable sort keeps them so among equals.
    order = reached[np.argsort(-time[reached].round(12), kind="stable")]
    return [ScoredNode(int(node_ids[place]), float(time[place])) for place in order]


def choose_seeds(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Return the best candidates with the weight each has as the start of a walk."""
    return {
        candidate.node.node_id: weigh_seed(candidate.vector_score, candidate.combined_score)
        for candidate in candidates[:WALK_SEEDS]
    }


def weigh_seed(vector_score: float | None, combined_score: float) -> float:
    """Return the square of the cosine, or of the fused score where there is no cosine."""
    return max(combined_score if vector_score is None else vector_score, 0.0) ** 2


def fuse_walk(
    hits: Sequence[ScoredNode], walked: Sequence[ScoredNode], *, weight: float = WALK_WEIGHT
) -> list[ScoredNode]:
    """Add the walk as one more list by reciprocal rank fusion; scores stay in [0, 1].

    The hits should be more than will be kept: a node that is not among them starts from 0.
    """
    scores = {hit.node_id: hit.score for hit in hits}
    for rank, node in enumerate(walked, start=1):
        gained = weight * (_RRF_K + 1) / (_RRF_K + rank)
        scores[node.node_id] = scores.get(node.node_id, 0.0) + gained
    fused = [ScoredNode(node_id, score / (1 + weight)) for node_id, score in scores.items()]
    return sorted(fused, key=lambda node: (-node.score, node.node_id))


def rank_by_graph(
    candidates: Sequence[Candidate],
    ranks: Mapping[int, float],
    *,
    alpha: float = 0.7,
    beta: float = 0.3,
    basis: Basis = "similarity",
) -> list[Candidate]:
    """Reorder by alpha * similarity + beta * rank, where ranks are divided by the tenant's largest.

    With the basis "score" the score so far stands for the similarity, so that what keywords found
    stays. Without any ranks the candidates stay as they are.
    """
    if not ranks:
        return list(candidates)
    blended = [
        replace(candidate, score=alpha * base + beta * rank, graph_score=rank)
        for candidate in candidates
        for base, rank in [(_find_base(candidate, basis), ranks.get(candidate.node.node_id, 0.0))]
    ]
    return sorted(blended, key=lambda each: (-each.score, each.node.node_id))


def _find_base(candidate: Candidate, basis: Basis) -> float:
    """The cross-encoder's word if it has spoken, else the cosine, else the score so far."""
    if basis == "score":
        return candidate.score
    if candidate.ce_score is not None:
        return float(expit(candidate.ce_score))
    return candidate.score if candidate.vector_score is None else candidate.vector_score


def _number_nodes(
    links: Links, *, alone: Sequence[int] = ()
) -> tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.intp]]:
    """The nodes in order, those without links too, and the ends of each link as places there."""
    count = len(links.sources)
    ends = np.concatenate([links.sources, links.targets, np.array(alone, dtype=np.int32)])
    node_ids, places = np.unique(ends, return_inverse=True)
    return node_ids, places[:count], places[count : 2 * count]


def _build_shares(
    sources: NDArray[np.intp], targets: NDArray[np.intp], *, weights: Floats, count: int
) -> csr_array:
    """The matrix that hands each node's value on to its targets, by the weight of its links."""
    # Their sum may be more than a float holds, and the least of them less than one holds.
    scaled = np.maximum(weights / weights.max(), np.finfo(np.float64).tiny)
    given = np.bincount(sources, weights=scaled, minlength=count)
    return csr_array((scaled / given[sources], (targets, sources)), shape=(count, count))
