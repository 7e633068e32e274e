"""How well a node answers, on a scale that means the same for every question (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.types import Candidate

Band = Literal["high", "good", "partial", "low"]
_BANDS: tuple[tuple[float, Band], ...] = ((0.85, "high"), (0.70, "good"), (0.50, "partial"))


@dataclass(frozen=True, slots=True)
class RelevanceScale:
    """What relevance is measured by: the sum of the terms' idf, and the weights of the legs.

    The weight of a leg that did not run is 0.
    """

    idf_total: float
    bm25_weight: float
    vector_weight: float


def judge_relevance(candidate: Candidate, scale: RelevanceScale) -> float:
    """Return the weighted mean of min(1, bm25 / sum of idf) and the calibrated cosine."""
    weights = scale.bm25_weight + scale.vector_weight
    if weights == 0:
        return 0.0
    keywords = min(1.0, candidate.bm25_score / scale.idf_total) if scale.idf_total > 0 else 0.0
    meaning = max(candidate.confidence or 0.0, 0.0)
    return (scale.bm25_weight * keywords + scale.vector_weight * meaning) / weights


def find_band(relevance: float) -> Band:
    """Return the band of a relevance."""
    return next((band for least, band in _BANDS if relevance >= least), "low")
