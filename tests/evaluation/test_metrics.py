"""Measures against values computed by hand; ir-measures is what computes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.evaluation.metrics import average, measure_rankings, summarise_seconds
from service.evaluation.tune import compute_ndcg

DOCUMENTS = [f"d{place}" for place in range(12)]


def test_the_measures_of_one_ranking_are_those_computed_by_hand():
    relevant = {"d1": 1, "d2": 3, "d9": 1}
    values = measure_rankings({"q": relevant}, {"q": ["d0", "d2", "d1", "d3", "d4", "d5"]})
    ideal = 3 + 1 / math.log2(3) + 1 / math.log2(4)
    found = 3 / math.log2(3) + 1 / math.log2(4)
    assert values["ndcg@10"]["q"] == pytest.approx(found / ideal)
    assert values["mrr@10"]["q"] == pytest.approx(1 / 2)
    assert values["p@5"]["q"] == pytest.approx(2 / 5)
    assert values["p@10"]["q"] == pytest.approx(2 / 10)
    assert values["recall@5"]["q"] == pytest.approx(2 / 3)
    assert values["recall@100"]["q"] == pytest.approx(2 / 3)


def test_a_question_that_found_nothing_counts_as_zero_in_the_mean():
    values = measure_rankings({"a": {"x": 1}, "b": {"y": 1}}, {"a": ["x"], "b": []})
    assert values["ndcg@10"] == {"a": 1.0, "b": 0.0}
    assert average(values["ndcg@10"]) == 0.5


def test_the_order_given_counts_and_not_the_names():
    ranked = ["z", "y", "a"]
    values = measure_rankings({"q": {"a": 1}}, {"q": ranked})
    assert values["mrr@10"]["q"] == pytest.approx(1 / 3)


def test_what_stands_beyond_the_tenth_place_is_not_seen_by_ndcg():
    ranked = [*DOCUMENTS[:10], "wanted"]
    values = measure_rankings({"q": {"wanted": 1}}, {"q": ranked})
    assert values["ndcg@10"]["q"] == values["mrr@10"]["q"] == 0
    assert values["recall@20"]["q"] == 1


@given(
    ranking=st.permutations(DOCUMENTS),
    relevant=st.dictionaries(st.sampled_from([*DOCUMENTS, "lost"]), st.integers(1, 3), min_size=1),
)
def test_the_measure_of_tuning_equals_ir_measures(ranking: list[str], relevant: dict[str, int]):
    values = measure_rankings({"q": relevant}, {"q": ranking})
    assert compute_ndcg(ranking, relevant) == pytest.approx(values["ndcg@10"]["q"])


def test_times_are_percentiles_in_milliseconds():
    assert summarise_seconds([place / 1000 for place in range(101)]) == {
        "p50": 50.0,
        "p95": 95.0,
        "p99": 99.0,
    }
