"""A planted difference is found, none is found between equal runs, and a seed repeats itself."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import wilcoxon

from service.evaluation.compare import Comparison, compare_values, estimate_mean
from service.evaluation.evaluate import Evaluation
from service.evaluation.options import Retrieval
from service.evaluation.report import render_report
from service.settings import Settings


def make_runs(gain: float, *, count: int = 200) -> tuple[dict[str, float], dict[str, float]]:
    """Two noisy runs on the same questions, the second better by a gain on average."""
    generator = np.random.default_rng(7)
    a = generator.uniform(0, 0.8, count)
    b = np.clip(a + gain + generator.normal(0, 0.1, count), 0, 1)
    return (
        {f"q{place}": float(value) for place, value in enumerate(a)},
        {f"q{place}": float(value) for place, value in enumerate(b)},
    )


def test_a_planted_difference_is_found():
    a, b = make_runs(0.05)
    found = compare_values(a, b, measure="ndcg@10")
    assert found.difference.low > 0.03
    assert found.difference.high < 0.07
    assert found.difference.p_value < 0.001
    assert found.wins > found.losses
    assert found.wins + found.losses + found.ties == 200


def test_the_other_way_round_the_signs_are_the_other_way_round():
    a, b = make_runs(0.05)
    there, back = compare_values(a, b, measure="m"), compare_values(b, a, measure="m")
    assert back.difference.mean == pytest.approx(-there.difference.mean)
    assert back.difference.high < 0
    assert (back.wins, back.losses) == (there.losses, there.wins)


def test_noise_alone_is_no_difference():
    a, b = make_runs(0.0)
    found = compare_values(a, b, measure="ndcg@10")
    assert found.difference.low < 0 < found.difference.high
    assert found.difference.p_value > 0.05


def test_equal_runs_differ_in_nothing():
    a, _ = make_runs(0.0)
    found = compare_values(a, dict(a), measure="ndcg@10")
    assert (found.difference.mean, found.difference.low, found.difference.high) == (0, 0, 0)
    assert found.difference.p_value == 1
    assert (found.wins, found.losses, found.ties) == (0, 0, 200)


def test_runs_are_paired_by_question_and_not_by_place():
    a = {"x": 0.1, "y": 0.9, "z": 0.5}
    found = compare_values(a, {"z": 0.5, "y": 0.9, "x": 0.3}, measure="m")
    assert (found.wins, found.losses, found.ties) == (1, 0, 2)
    assert found.changes[0].query_id == "x"
    assert found.changes[0].difference == pytest.approx(0.2)


def test_the_p_value_agrees_with_another_paired_test():
    a, b = make_runs(0.012)
    ours = compare_values(a, b, measure="m").difference.p_value
    theirs = wilcoxon(list(b.values()), list(a.values())).pvalue
    assert 0.01 < theirs < 0.5
    assert ours == pytest.approx(theirs, abs=0.15)


def test_the_interval_is_that_of_the_normal_distribution_for_many_questions():
    differences = np.random.default_rng(3).normal(0.02, 0.2, 6000)
    found = estimate_mean(differences)
    half = 1.96 * differences.std() / np.sqrt(len(differences))
    assert found.low == pytest.approx(differences.mean() - half, abs=5e-4)
    assert found.high == pytest.approx(differences.mean() + half, abs=5e-4)


def test_the_same_seed_gives_the_same_figures_and_another_does_not():
    a, b = make_runs(0.01)
    one, again = (compare_values(a, b, measure="m", seed=1) for _ in range(2))
    other = compare_values(a, b, measure="m", seed=2)
    assert one.difference == again.difference
    assert one.difference != other.difference


# --- the page ---------------------------------------------------------------------------------


def make_evaluation(values: dict[str, float], mode: str) -> Evaluation:
    return Evaluation(
        Retrieval(mode, Settings()),  # type: ignore[arg-type]
        values={"ndcg@10": values},
        latency_ms={"search": {"p50": 1.25, "p95": 2.5, "p99": 3.5}},
        rankings=dict.fromkeys(values, ()),
    )


def render(comparison: Comparison, a: dict[str, float], b: dict[str, float]) -> str:
    return render_report(
        "A <comparison>",
        [comparison],
        a=make_evaluation(a, "bm25"),
        b=make_evaluation(b, "hybrid"),
        questions={query_id: f"is <b>{query_id}</b> & more?" for query_id in a},
    )


def test_the_page_holds_all_it_shows_and_asks_nobody_for_more():
    a, b = make_runs(0.05)
    page = render(compare_values(a, b, measure="ndcg@10"), a, b)
    assert page.count("<svg") == 3
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r"<script|<link|<img|@import|url\(|https?:", page)
    assert "b is better" in page
    assert "1.25" in page
    assert "hybrid_keyword_weight" in page


def test_questions_cannot_break_the_page():
    a, b = make_runs(0.05, count=3)
    page = render(compare_values(a, b, measure="ndcg@10"), a, b)
    assert "<h1>A &lt;comparison&gt;</h1>" in page
    assert "is &lt;b&gt;q0&lt;/b&gt; &amp; more?" in page


def test_equal_runs_make_a_page_that_says_so():
    a, _ = make_runs(0.0)
    page = render(compare_values(a, dict(a), measure="ndcg@10"), a, a)
    assert "No difference that could be told from chance" in page
    assert "nan" not in page
