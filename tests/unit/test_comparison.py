"""What an experiment shows: found where there is something, and not where there is nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.db.experiments import TriedSearch, TriedSearches
from service.quality.comparison import Limits, compare_variants, find_trigger
from service.quality.statistics import (
    compare_means,
    compare_quantiles,
    compare_shares,
    find_sample_size,
    judge_signs,
)
from tests.click_model import World, find_click_share, make_experiment, simulate

LIMITS = Limits(recall_drop=0.05, latency_rise=0.2, error_rise=0.01, least_searches=100)
SEEDS = 200
EXPERIMENT = make_experiment()


def compare(tried: list[TriedSearch], **options: float):
    return compare_variants(EXPERIMENT, TriedSearches(tuple(tried)), **options)


# --- the arithmetic ------------------------------------------------------------------------------


def test_shares_are_compared_as_in_the_textbook():
    found = compare_shares([True] * 56 + [False] * 14, [True] * 48 + [False] * 32)
    assert found is not None
    # Newcombe (1998), the score interval without continuity correction of 56/70 against 48/80.
    assert (found.value, found.low, found.high) == pytest.approx((-0.2, -0.3339, -0.0524), abs=1e-4)
    assert found.p_value == pytest.approx(0.00805, abs=1e-5)
    assert found.worse_p == pytest.approx(found.p_value / 2)


def test_means_that_differ_by_two_errors_are_hardly_by_chance():
    found = compare_means([0.0, 1.0] * 50, [0.0, 1.0] * 49 + [1.0, 1.0])
    assert found is not None
    assert found.value == pytest.approx(0.01)
    assert found.p_value == pytest.approx(0.8876, abs=1e-3)


def test_a_sample_size_is_the_textbooks():
    assert find_sample_size(0.5, 0.1) == 388
    assert find_sample_size(0.4, 0.0) is None
    uneven = find_sample_size(0.5, 0.1, ratio=9)
    assert uneven is not None
    assert uneven < 388  # of b alone: there are nine times as many of a


def test_a_sign_test_counts_what_was_decided():
    found = judge_signs(2, 8)
    assert found is not None
    assert found.p_value == pytest.approx(0.109375)
    assert judge_signs(0, 0) is None


def test_nothing_is_said_of_nothing():
    assert compare_shares([], [True]) is None
    assert compare_means([1.0], [1.0, 2.0]) is None
    assert compare_quantiles([], [1.0], quantile=0.5) is None
    empty = compare([])
    assert (empty.verdict, empty.a.positive_share, empty.need.searches) == ("undecided", None, None)


# --- a planted difference ------------------------------------------------------------------------


def test_a_better_variant_is_found_at_the_power_that_is_stated():
    a, b = World(first=0.40), World(first=0.55)
    base = find_click_share(a)
    effect = find_click_share(b) - base
    needed = find_sample_size(base, effect)
    assert needed is not None
    found = [compare(simulate(seed, a=a, b=b, searches=needed)).verdict for seed in range(SEEDS)]
    assert found.count("better") >= 0.75 * SEEDS  # 80 % within what 200 seeds can tell
    assert found.count("worse") == 0


def test_equal_variants_are_hardly_ever_called_different():
    same = World()
    found = [compare(simulate(seed, a=same, b=same, searches=300)).verdict for seed in range(SEEDS)]
    assert SEEDS - found.count("undecided") <= 0.08 * SEEDS


def test_the_searches_still_needed_shrink_as_they_come_in():
    a, b = World(first=0.40), World(first=0.55)
    tried = simulate(1, a=a, b=b, searches=400)
    early, late = (compare(tried[:count], effect=0.05).need for count in (200, 800))
    assert early.searches is not None
    assert late.searches is not None
    assert early.still is not None
    assert late.still is not None
    assert late.still < early.still
    assert late.still == pytest.approx(2 * (late.searches - 400), abs=1)


# --- triggers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worse", "reason"),
    [
        (World(milliseconds=14.0), "p95 latency rose"),
        (World(failing=0.05), "errors rose"),
        (World(first=0.1), "positive signal fell"),
    ],
)
def test_harm_beyond_its_limit_stops_variant_b(worse: World, reason: str):
    tried = simulate(3, a=World(), b=worse, searches=800)
    found = find_trigger(EXPERIMENT, tried, limits=LIMITS)
    assert found is not None
    assert reason in found


def test_too_few_searches_stop_nothing():
    tried = simulate(3, a=World(), b=World(milliseconds=40), searches=99)
    assert find_trigger(EXPERIMENT, tried, limits=LIMITS) is None
    tried = simulate(3, a=World(), b=World(milliseconds=40), searches=100)
    assert find_trigger(EXPERIMENT, tried, limits=LIMITS) is not None


def test_an_equal_variant_is_seldom_stopped_however_often_one_looks():
    stopped = 0
    for seed in range(100):
        tried = simulate(seed, a=World(), b=World(), searches=800)
        looks = (tried[: 2 * searches] for searches in range(100, 801, 100))
        stopped += any(find_trigger(EXPERIMENT, look, limits=LIMITS) for look in looks)
    assert stopped <= 5


def test_remembered_searches_do_not_count_as_quick():
    tried = simulate(3, a=World(), b=World(milliseconds=14), searches=400)
    cached = [replace(each, cached=each.variant == "b") for each in tried]
    assert find_trigger(EXPERIMENT, cached, limits=LIMITS) is None
    assert compare(cached).b.p95 is None


def test_a_list_whose_b_nodes_nobody_wants_stops_an_interleaved_experiment():
    shown = TriedSearch("interleaved", "x", False, False, 5.0, True, rated=True)
    tried = [replace(shown, credit_a=1)] * 80 + [replace(shown, credit_b=1)] * 40
    interleaved = make_experiment(interleaved=True)
    found = find_trigger(interleaved, tried, limits=LIMITS)
    assert found is not None
    assert "b won 40 of 120" in found
    comparison = compare_variants(interleaved, TriedSearches(tuple(tried)))
    assert comparison.verdict == "worse"
    assert comparison.signs is not None
    assert (comparison.signs.wins_a, comparison.signs.wins_b) == (80, 40)
