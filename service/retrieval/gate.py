"""Whether what was found has anything to do with the question (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.types import Candidate

CONFIDENCE_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best calibrated cosine of a pool, and whether it is too low to use the pool."""

    confidence: float | None
    fires: bool


def judge_confidence(
    candidates: Sequence[Candidate], *, threshold: float = CONFIDENCE_THRESHOLD
) -> Verdict:
    """Fire below the threshold, and on an empty pool; a pool without any cosine is let through.

    A threshold of 0 lets everything through, cosines below 0 too.
    """
    if not candidates:
        return Verdict(None, fires=True)
    known: Iterable[float] = (
        value for value in map(read_confidence, candidates) if value is not None
    )
    best = max(known, default=None)
    return Verdict(best, fires=best is not None and threshold > 0 and best < threshold)


def read_confidence(candidate: Candidate) -> float | None:
    """Return the calibrated cosine; the raw one where it was never calibrated."""
    return candidate.vector_score if candidate.confidence is None else candidate.confidence
