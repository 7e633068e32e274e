"""What an experiment shows so far: figures of both variants, their differences, triggers (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from service.db.experiments import TriedSearch, TriedSearches
from service.quality.statistics import (
    Difference,
    compare_means,
    compare_quantiles,
    compare_shares,
    find_level,
    find_sample_size,
    judge_signs,
)
from service.types import Experiment

SIGNIFICANT = 0.05
PRIMARY = "positive_share"
"""The measure the verdict and the sample size are about."""
Verdict = Literal["better", "worse", "undecided"]


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """What one variant did; shares are None where there is nothing to take a share of.

    positive_share: searches with a node or an answer that somebody wanted, of all with hits.
    answer_recall: the same of those that somebody gave feedback on; it stands for answer recall.
    mrr: mean of 1 / position of the first such node, 0 for none. Latencies are of searches that
    were not remembered, in milliseconds.
    """

    searches: int
    errors: int
    rated: int
    error_rate: float | None
    p50: float | None
    p95: float | None
    click_through: float | None
    mrr: float | None
    positive_share: float | None
    answer_recall: float | None


@dataclass(frozen=True, slots=True)
class Signs:
    """Interleaved searches by whose nodes people wanted more of."""

    wins_a: int
    wins_b: int
    ties: int
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class SampleNeed:
    """How many searches it takes to see an effect 4 times of 5; None where there is none to see.

    searches: of variant b. still: searches of the tenant, both variants, that are yet to come.
    """

    effect: float
    searches: int | None
    still: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """An experiment in figures; of an interleaved one, b is the interleaved list."""

    a: VariantFigures
    b: VariantFigures
    differences: dict[str, Difference | None]
    signs: Signs | None
    need: SampleNeed
    verdict: Verdict
    left_out: int


@dataclass(frozen=True, slots=True)
class Limits:
    """When variant b is stopped by itself, and how many searches of each variant that takes."""

    recall_drop: float
    latency_rise: float
    error_rise: float
    least_searches: int


def compare_variants(
    experiment: Experiment, tried: TriedSearches, *, effect: float | None = None
) -> Comparison:
    """Return the figures of both variants; effect: what to plan for, else what is seen so far."""
    a, b = _split(tried.searches)
    signs = count_signs(b) if experiment.interleaved else None
    differences = _find_differences(a, b, timed=not experiment.interleaved)
    decisive = signs.difference if signs is not None else differences[PRIMARY]
    return Comparison(
        a=_measure(a),
        b=_measure(b),
        differences=differences,
        signs=signs,
        need=_find_need(experiment, a, b, decisive=decisive, effect=effect),
        verdict=_judge(decisive),
        left_out=tried.left_out,
    )


def find_trigger(
    experiment: Experiment, searches: Sequence[TriedSearch], *, limits: Limits
) -> str | None:
    """Return why variant b must be stopped; None while nothing speaks against it.

    A change must be beyond its limit and not by chance: one-sided, 5 % for all looks together.
    """
    a, b = _split(searches)
    reasons = [_check_errors(a, b, limits)]
    if experiment.interleaved:
        reasons.append(_check_signs(count_signs(b), limits))
    else:
        reasons += [_check_latency(a, b, limits), *_check_recall(a, b, limits)]
    return next((reason for reason in reasons if reason is not None), None)


def count_signs(searches: Sequence[TriedSearch]) -> Signs:
    """Return whose nodes people wanted more of, search by search."""
    leads = [each.credit_b - each.credit_a for each in searches if each.credit_a or each.credit_b]
    wins_a = sum(lead < 0 for lead in leads)
    wins_b = sum(lead > 0 for lead in leads)
    return Signs(wins_a, wins_b, len(leads) - wins_a - wins_b, judge_signs(wins_a, wins_b))


def _split(searches: Sequence[TriedSearch]) -> tuple[list[TriedSearch], list[TriedSearch]]:
    ours = [each for each in searches if each.variant == "a"]
    return ours, [each for each in searches if each.variant != "a"]


def _measure(searches: Sequence[TriedSearch]) -> VariantFigures:
    times, found = _times(searches), _with_hits(searches)
    rated = [each for each in found if each.rated]
    return VariantFigures(
        searches=len(searches),
        errors=sum(each.failed for each in searches),
        rated=len(rated),
        error_rate=_mean([each.failed for each in searches]),
        p50=float(np.quantile(times, 0.5)) if times else None,
        p95=float(np.quantile(times, 0.95)) if times else None,
        click_through=_mean([each.clicked for each in found]),
        mrr=_mean(_ranks(found)),
        positive_share=_mean(_positives(found)),
        answer_recall=_mean(_positives(rated)),
    )


def _find_differences(
    a: Sequence[TriedSearch], b: Sequence[TriedSearch], *, timed: bool
) -> dict[str, Difference | None]:
    found_a, found_b = _with_hits(a), _with_hits(b)
    rated_a, rated_b = ([x for x in each if x.rated] for each in (found_a, found_b))
    times = (_times(a), _times(b)) if timed else ([], [])
    return {
        "error_rate": compare_shares([x.failed for x in a], [x.failed for x in b]),
        "p50": compare_quantiles(*times, quantile=0.5),
        "p95": compare_quantiles(*times, quantile=0.95),
        "click_through": compare_shares([x.clicked for x in found_a], [x.clicked for x in found_b]),
        "mrr": compare_means(_ranks(found_a), _ranks(found_b)),
        "positive_share": compare_shares(_positives(found_a), _positives(found_b)),
        "answer_recall": compare_shares(_positives(rated_a), _positives(rated_b)),
    }


def _find_need(
    experiment: Experiment,
    a: Sequence[TriedSearch],
    b: Sequence[TriedSearch],
    *,
    decisive: Difference | None,
    effect: float | None,
) -> SampleNeed:
    if effect is None:
        effect = 0.0 if decisive is None else decisive.value
    found_a, found_b = _with_hits(a), _with_hits(b)
    if experiment.interleaved:
        # Against an endless a of one half: what a sign test is.
        wanted = find_sample_size(0.5, effect, ratio=float("inf"))
        signs = count_signs(b)
        made, each_takes = signs.wins_a + signs.wins_b, len(b) / (signs.wins_a + signs.wins_b or 1)
    else:
        base = _mean(_positives(found_a))
        ratio = (1 - experiment.share) / experiment.share
        wanted = None if base is None else find_sample_size(base, effect, ratio=ratio)
        made, each_takes = len(found_b), 1.0
    if wanted is None:
        return SampleNeed(effect, None, None)
    missing = max(0, wanted - made) * max(each_takes, 1.0)
    return SampleNeed(effect, wanted, ceil(missing / experiment.share))


def _judge(decisive: Difference | None) -> Verdict:
    if decisive is None or decisive.p_value >= SIGNIFICANT:
        return "undecided"
    return "better" if decisive.value > 0 else "worse"


def _check_errors(a: Sequence[TriedSearch], b: Sequence[TriedSearch], limits: Limits) -> str | None:
    if min(len(a), len(b)) < limits.least_searches:
        return None
    done = compare_shares([not each.failed for each in a], [not each.failed for each in b])
    level = _find_level(a, b, limits)
    if done is None or -done.value < limits.error_rise or done.worse_p >= level:
        return None
    return f"errors rose by {-done.value:.1%} of the searches (limit {limits.error_rise:.1%})"


def _check_latency(
    a: Sequence[TriedSearch], b: Sequence[TriedSearch], limits: Limits
) -> str | None:
    ours, theirs = _times(a), _times(b)
    if min(len(ours), len(theirs)) < limits.least_searches:
        return None
    later = compare_quantiles(ours, theirs, quantile=0.95)
    before = float(np.quantile(ours, 0.95))
    level = _find_level(ours, theirs, limits)
    if later is None or later.value < limits.latency_rise * before or later.worse_p >= level:
        return None
    rise = later.value / before if before else float("inf")
    return f"p95 latency rose by {rise:.0%} to {before + later.value:.1f} ms"


def _check_recall(
    a: Sequence[TriedSearch], b: Sequence[TriedSearch], limits: Limits
) -> list[str | None]:
    found_a, found_b = _with_hits(a), _with_hits(b)
    rated_a, rated_b = ([x for x in each if x.rated] for each in (found_a, found_b))
    return [
        _check_drop("answer recall (by feedback)", rated_a, rated_b, limits=limits),
        _check_drop(
            "the share of searches with a positive signal", found_a, found_b, limits=limits
        ),
    ]


def _check_drop(
    name: str, a: Sequence[TriedSearch], b: Sequence[TriedSearch], *, limits: Limits
) -> str | None:
    if min(len(a), len(b)) < limits.least_searches:
        return None
    change = compare_shares(_positives(a), _positives(b))
    level = _find_level(a, b, limits)
    if change is None or -change.value < limits.recall_drop or change.worse_p >= level:
        return None
    return f"{name} fell by {-change.value:.1%} (limit {limits.recall_drop:.1%})"


def _check_signs(signs: Signs, limits: Limits) -> str | None:
    decided, change = signs.wins_a + signs.wins_b, signs.difference
    if change is None or decided < limits.least_searches:
        return None
    level = find_level(decided, first=limits.least_searches)
    if -change.value < limits.recall_drop or change.worse_p >= level:
        return None
    return f"b won {signs.wins_b} of {decided} decided interleaved searches"


def _find_level(a: Sequence[object], b: Sequence[object], limits: Limits) -> float:
    return find_level(min(len(a), len(b)), first=limits.least_searches)


def _with_hits(searches: Sequence[TriedSearch]) -> list[TriedSearch]:
    return [each for each in searches if each.has_hits and not each.failed]


def _times(searches: Sequence[TriedSearch]) -> list[float]:
    """Latencies of searches that ran: a failure has none of its own, a remembered one another's."""
    return [
        each.milliseconds
        for each in searches
        if each.milliseconds is not None and not each.cached and not each.failed
    ]


def _positives(searches: Sequence[TriedSearch]) -> list[bool]:
    return [each.accepted or each.first_positive is not None for each in searches]


def _ranks(searches: Sequence[TriedSearch]) -> list[float]:
    return [0.0 if each.first_positive is None else 1 / each.first_positive for each in searches]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
