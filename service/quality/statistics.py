"""The arithmetic of comparing two samples (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isinf, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95
POWER = 0.8
RESAMPLES = 10_000
SEED = 20
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Difference:
    """What b has more than a, the interval that holds it 19 times of 20, and how likely by chance.

    p_value: two-sided. worse_p: one-sided, that b is no worse than a where smaller is worse.
    """

    value: float
    low: float
    high: float
    p_value: float
    worse_p: float


def compare_shares(a: Sequence[bool], b: Sequence[bool]) -> Difference | None:
    """Return how the share of true values differs: pooled z test, Newcombe's interval."""
    if not a or not b:
        return None
    share_a, share_b = sum(a) / len(a), sum(b) / len(b)
    pooled = (sum(a) + sum(b)) / (len(a) + len(b))
    error = sqrt(pooled * (1 - pooled) * (1 / len(a) + 1 / len(b)))
    low_a, high_a = _wilson(share_a, len(a))
    low_b, high_b = _wilson(share_b, len(b))
    value = share_b - share_a
    return Difference(
        value,
        value - sqrt((share_b - low_b) ** 2 + (high_a - share_a) ** 2),
        value + sqrt((high_b - share_b) ** 2 + (share_a - low_a) ** 2),
        *_judge(value, error),
    )


def compare_means(a: Sequence[float], b: Sequence[float]) -> Difference | None:
    """Return how means differ: Welch's test by the normal distribution."""
    if len(a) < 2 or len(b) < 2:
        return None
    value = float(np.mean(b) - np.mean(a))
    error = sqrt(float(np.var(a, ddof=1)) / len(a) + float(np.var(b, ddof=1)) / len(b))
    margin = _NORMAL.inv_cdf((1 + LEVEL) / 2) * error
    return Difference(value, value - margin, value + margin, *_judge(value, error))


def compare_quantiles(
    a: Sequence[float], b: Sequence[float], *, quantile: float
) -> Difference | None:
    """Return how a quantile differs: bootstrap interval, and a test of who exceeds a's quantile.

    Here more is worse.
    """
    if not a or not b:
        return None
    ours, theirs = np.asarray(a, float), np.asarray(b, float)
    limit = float(np.quantile(ours, quantile))
    value = float(np.quantile(theirs, quantile)) - limit
    exceeding = compare_shares(
        [bool(each) for each in ours <= limit], [bool(each) for each in theirs <= limit]
    )
    assert exceeding is not None
    low, high = _bootstrap(ours, theirs, quantile=quantile)
    return Difference(value, low, high, exceeding.p_value, exceeding.worse_p)


def judge_signs(wins_a: int, wins_b: int) -> Difference | None:
    """Return b's share of the decided comparisons beyond one half: the exact sign test."""
    from scipy.stats import binomtest

    decided = wins_a + wins_b
    if not decided:
        return None
    two_sided = binomtest(wins_b, decided)
    interval = two_sided.proportion_ci(LEVEL, method="wilson")
    worse = binomtest(wins_b, decided, alternative="less")
    return Difference(
        wins_b / decided - 0.5,
        float(interval.low) - 0.5,
        float(interval.high) - 0.5,
        float(two_sided.pvalue),
        float(worse.pvalue),
    )


def find_level(count: int, *, first: int) -> float:
    """Return the one-sided p-value to ask for at so many searches, whoever looks how often.

    Robbins' mixture boundary, tuned to the first looks: all of them together err 1 time of 20.
    """
    tuned = first / 4
    bound = (1 + tuned / count) * log((1 + count / tuned) / (2 * (1 - LEVEL)) ** 2)
    return _NORMAL.cdf(-sqrt(bound))


def find_sample_size(share: float, effect: float, *, ratio: float = 1.0) -> int | None:
    """Return how many b needs to tell share + effect from share at 5 %, 4 times of 5.

    ratio: how many of a there are for each of b. None where there is no effect to find.
    """
    other = min(max(share + effect, 0.0), 1.0)
    if other == share:
        return None
    mean = (share + other / ratio) / (1 + 1 / ratio)
    chance = _NORMAL.inv_cdf((1 + LEVEL) / 2) * sqrt(mean * (1 - mean) * (1 + 1 / ratio))
    power = _NORMAL.inv_cdf(POWER) * sqrt(share * (1 - share) / ratio + other * (1 - other))
    return ceil(((chance + power) / (other - share)) ** 2)


def _judge(value: float, error: float) -> tuple[float, float]:
    score = value / error if error > 0 else (0.0 if value == 0 else float("inf") * value)
    if isinf(score):
        return 0.0, 0.0 if score < 0 else 1.0
    return 2 * _NORMAL.cdf(-abs(score)), _NORMAL.cdf(score)


def _wilson(share: float, count: int) -> tuple[float, float]:
    z = _NORMAL.inv_cdf((1 + LEVEL) / 2)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    margin = (
        z / (1 + z * z / count) * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    )
    return max(0.0, middle - margin), min(1.0, middle + margin)


def _bootstrap(a: Floats, b: Floats, *, quantile: float) -> tuple[float, float]:
    chance = np.random.default_rng(SEED)
    drawn = _resample(chance, b, quantile) - _resample(chance, a, quantile)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _resample(chance: np.random.Generator, values: Floats, quantile: float) -> Floats:
    """Return the quantile of so many samples drawn from the values with replacement.

    The k-th smallest of n even draws from [0, 1) is beta-distributed: no sample need be drawn.
    """
    count = values.size
    place = max(1, ceil(quantile * count))
    drawn = chance.beta(place, count - place + 1, RESAMPLES)
    places = np.minimum((drawn * count).astype(np.int64), count - 1)
    resampled: Floats = np.sort(values)[places]
    return resampled
