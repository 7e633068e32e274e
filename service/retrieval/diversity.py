"""Says nothing twice: duplicates collapse, and MMR spreads a selection (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.retrieval.trace import Drop, StepResult
from service.types import Candidate

# Two texts this close say the same; an overlap of neighbouring sections stays far below.
NEAR_DUPLICATE = 0.97

Floats = NDArray[np.float32]


def collapse_duplicates(
    candidates: Sequence[Candidate], *, near: float = NEAR_DUPLICATE
) -> StepResult:
    """Keep the first of candidates that are one node, have one text, or nearly the same vector."""
    kept: list[Candidate] = []
    drops: list[Drop] = []
    rows = stack_vectors(candidates)
    places: list[int] = []
    nodes: dict[int, int] = {}
    texts: dict[bytes, int] = {}
    for place, candidate in enumerate(candidates):
        node = candidate.node
        twin = nodes.get(node.node_id) or texts.get(node.content_hash)
        if twin is None and places:
            alike = _compare(rows[places], rows[place])
            nearest = int(alike.argmax())
            twin = kept[nearest].node.node_id if alike[nearest] >= near else None
        if twin is None:
            kept.append(candidate)
            places.append(place)
            nodes[node.node_id] = node.node_id
            if node.content_hash:
                texts[node.content_hash] = node.node_id
        else:
            drops.append(Drop(node.node_id, f"says the same as node {twin}"))
    return StepResult(kept, tuple(drops))


def select_diverse(
    candidates: Sequence[Candidate], *, alpha: float = 0.5, top_k: int
) -> list[Candidate]:
    """Pick by maximal marginal relevance: alpha * score - (1 - alpha) * likeness to the picked.

    Scores are divided by the largest, so that both parts share a scale.
    """
    if not candidates:
        return []
    rows = stack_vectors(candidates)
    scores = np.array([candidate.score for candidate in candidates], dtype=np.float64)
    scores = scores / (np.abs(scores).max() or 1.0)
    closest = np.zeros(len(candidates))
    left = list(range(len(candidates)))
    picked: list[int] = []
    while left and len(picked) < top_k:
        worth = alpha * scores - (1 - alpha) * closest
        best = max(left, key=worth.tolist().__getitem__)
        left.remove(best)
        picked.append(best)
        closest = np.maximum(closest, _compare(rows, rows[best]))
    return [candidates[place] for place in picked]


def stack_vectors(candidates: Sequence[Candidate]) -> Floats:
    """Return unit vectors, a row each; zeros where one is missing or another model's."""
    dimension = max((len(_vector(each)) for each in candidates), default=0)
    rows = np.zeros((len(candidates), dimension), dtype=np.float32)
    for place, candidate in enumerate(candidates):
        vector = _vector(candidate)
        if len(vector) == dimension:
            rows[place] = vector
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths == 0, np.float32(1), lengths)
    return rows


def _compare(rows: Floats, row: Floats) -> Floats:
    # Not `rows @ row`: for so little, the threads of BLAS cost far more than they bring.
    alike: Floats = np.einsum("ij,j->i", rows, row)
    return alike


def _vector(candidate: Candidate) -> Floats:
    return np.zeros(0, dtype=np.float32) if candidate.embedding is None else candidate.embedding
