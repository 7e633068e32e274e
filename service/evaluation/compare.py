"""Two runs on the same questions: how far apart, and whether that could be chance (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEED = 20
RESAMPLES = 10_000
CONFIDENCE = 0.95
# Rounding errors of a measure are no difference.
EQUAL_WITHIN = 1e-9
_NUMBERS_AT_ONCE = 4_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap interval and the p-value of a randomisation test against 0."""

    mean: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A question and its value in both runs."""

    query_id: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run b against run a in one measure; changes has every question, the most changed first."""

    measure: str
    mean_a: float
    mean_b: float
    difference: Interval
    wins: int
    losses: int
    ties: int
    changes: tuple[QueryChange, ...]


def compare_values(
    a: Mapping[str, float], b: Mapping[str, float], *, measure: str, seed: int = SEED
) -> Comparison:
    """Compare two runs question by question; both must have the same questions."""
    changes = [QueryChange(query_id, a[query_id], b[query_id]) for query_id in a]
    differences = np.array([change.difference for change in changes])
    return Comparison(
        measure=measure,
        mean_a=float(np.mean(list(a.values()))),
        mean_b=float(np.mean([b[query_id] for query_id in a])),
        difference=estimate_mean(differences, seed=seed),
        wins=int((differences > EQUAL_WITHIN).sum()),
        losses=int((differences < -EQUAL_WITHIN).sum()),
        ties=int((np.abs(differences) <= EQUAL_WITHIN).sum()),
        changes=tuple(sorted(changes, key=lambda each: (-abs(each.difference), each.query_id))),
    )


def estimate_mean(differences: Floats, *, seed: int = SEED) -> Interval:
    """Bootstrap the mean of paired differences; the test flips their signs at random."""
    generator = np.random.default_rng(seed)
    means = bootstrap_means(differences, generator)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    p_value = _randomisation_p(differences, generator)
    return Interval(float(differences.mean()), float(low), float(high), p_value)


def bootstrap_means(differences: Floats, generator: np.random.Generator) -> Floats:
    """Means of samples drawn with replacement, as many as the differences are."""
    size = len(differences)
    parts = [
        differences[generator.integers(0, size, (rows, size))].mean(axis=1)
        for rows in _portions(size)
    ]
    return np.concatenate(parts)


def _randomisation_p(differences: Floats, generator: np.random.Generator) -> float:
    """Two-sided: how often a sum with random signs is at least as far from 0 as the real one."""
    size = len(differences)
    real = abs(differences.sum())
    as_far = 0
    for rows in _portions(size):
        signs = generator.integers(0, 2, (rows, size), dtype=np.int8) * 2 - 1
        as_far += int((np.abs(signs @ differences) >= real - EQUAL_WITHIN).sum())
    # The real signs are one of the possible ones: never 0.
    return (as_far + 1) / (RESAMPLES + 1)


def _portions(size: int) -> list[int]:
    """How many samples at a time, so that memory stays flat."""
    rows = max(1, _NUMBERS_AT_ONCE // size)
    whole, rest = divmod(RESAMPLES, rows)
    return [rows] * whole + [rest] * bool(rest)
