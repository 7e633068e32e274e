"""Tuning: better where the default is wrong, honest where it is right, silent on too little."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from service.errors import InvalidInput
from service.evaluation.beir import Question
from service.evaluation.fusion import FusionCandidates, FusionPoint, fuse_candidates
from service.evaluation.gate import fit_threshold, judge_threshold
from service.evaluation.legs import AskedLegs
from service.evaluation.tune import TuneReport, make_grid, score_grid, tune
from service.settings import Settings

NODES = 20
NONE = np.array([])


def ask(number: int, *, keyword_places: Sequence[int], vector_places: Sequence[int]) -> AskedLegs:
    """A question whose document is node 1: the legs rank it, and the others, as told."""
    keyword_ranks = np.array(keyword_places, dtype=float)
    vector_ranks = np.array(vector_places, dtype=float)
    candidates = FusionCandidates(
        node_ids=np.arange(1, NODES + 1),
        keyword_ranks=keyword_ranks,
        vector_ranks=vector_ranks,
        bm25_scores=10 / keyword_ranks,
        cosines=1 - vector_ranks / NODES,
    )
    documents = tuple(f"d{number}-{node}" for node in range(1, NODES + 1))
    question = Question(str(number), f"question {number}", number)
    return AskedLegs(question, candidates, documents, best_cosine=0.9)


def make_asked(count: int, *, good_leg: str, noise: float = 0.0) -> list[AskedLegs]:
    """Questions of which one leg knows the answer and the other ranks at random."""
    generator = np.random.default_rng(11)
    asked = []
    for number in range(count):
        right = np.arange(1, NODES + 1)
        wrong = generator.permutation(NODES) + 1
        if generator.random() < noise:
            right, wrong = wrong, right
        legs = (right, wrong) if good_leg == "keyword" else (wrong, right)
        asked.append(ask(number, keyword_places=list(legs[0]), vector_places=list(legs[1])))
    return asked


def run(asked: list[AskedLegs], **changes: object) -> TuneReport:
    judgements = {each.question.query_id: {each.documents[0]: 1} for each in asked}
    options: dict[str, object] = {
        "settings": Settings(),
        "confidences": np.full(len(asked), 0.9),
        "unanswerable": NONE,
    }
    return tune(asked, judgements, **(options | changes))  # type: ignore[arg-type]


def test_where_the_default_is_wrong_tuning_finds_better_and_says_by_how_much():
    report = run(make_asked(80, good_leg="keyword"))
    assert report.improves
    assert report.held_out_tuned > 0.99
    assert report.gain.mean == pytest.approx(report.held_out_tuned - report.held_out_current)
    assert 0 < report.gain.low < report.gain.mean < report.gain.high
    assert report.proposed.keyword_weight > report.proposed.vector_weight
    assert report.settings["hybrid_keyword_weight"] == report.proposed.keyword_weight
    assert len(report.fold_choices) == 5


def test_what_is_fitted_depends_on_the_collection():
    assert run(make_asked(80, good_leg="vector")).proposed.vector_weight > 0.6


def test_where_the_current_settings_are_right_nothing_is_proposed():
    current = Settings(hybrid_keyword_weight=1, hybrid_vector_weight=0)
    report = run(make_asked(80, good_leg="keyword"), settings=current)
    assert report.gain.mean == 0
    assert not report.improves
    assert report.settings == {}
    assert report.proposed == report.current


def test_the_gain_is_not_measured_on_questions_it_was_fitted_on():
    generator = np.random.default_rng(2)
    asked = [
        ask(
            number,
            keyword_places=list(generator.permutation(NODES) + 1),
            vector_places=list(generator.permutation(NODES) + 1),
        )
        for number in range(200)
    ]
    report = run(asked)
    judgements = {each.question.query_id: {each.documents[0]: 1} for each in asked}
    scores = score_grid(asked, judgements, grid=make_grid(report.current))
    fitted_gain = scores.mean(axis=1).max() - scores[0].mean()
    assert fitted_gain > 0 > report.gain.mean
    assert report.settings == {}


@pytest.mark.parametrize("count", [1, 10, 39])
def test_a_set_too_small_is_refused_with_how_many_it_takes(count: int):
    with pytest.raises(InvalidInput) as caught:
        run(make_asked(count, good_leg="keyword"), folds=min(5, max(2, count)))
    assert "too few" in str(caught.value) or "cannot be divided" in str(caught.value)


def test_an_interval_from_a_loss_to_a_worthwhile_gain_is_refused():
    with pytest.raises(InvalidInput, match=r"too few to tell: the gain .* is between -"):
        run(make_asked(48, good_leg="vector", noise=0.5))


def test_the_same_seed_gives_the_same_report():
    asked = make_asked(60, good_leg="keyword", noise=0.1)
    assert run(asked, seed=3) == run(asked, seed=3)


def test_the_current_fusion_is_the_first_of_the_grid_and_there_once():
    current = FusionPoint("rrf", 0.4, 0.6, 60)
    grid = make_grid(current)
    assert grid[0] == current
    assert grid.count(current) == 1
    assert {point.fusion for point in grid} == {"rrf", "convex"}


def test_a_leg_without_weight_brings_no_candidates():
    asked = ask(0, keyword_places=range(1, 21), vector_places=range(20, 0, -1))
    alone = fuse_candidates(asked.candidates, FusionPoint("rrf", 1, 0, 60))
    assert alone.node_ids.tolist() == list(range(1, 21))
    assert alone.scores[0] == 1.0


# --- the gate ---------------------------------------------------------------------------------


def test_with_questions_to_refuse_the_gate_stands_between_both_kinds():
    generator = np.random.default_rng(1)
    answerable, unanswerable = generator.normal(0.7, 0.05, 200), generator.normal(0.3, 0.05, 200)
    threshold = fit_threshold(answerable, unanswerable, current=0.9)
    assert 0.4 < threshold < 0.6
    outcome = judge_threshold(threshold, answerable, unanswerable=unanswerable)
    assert outcome.answerable_refused < 0.01
    assert outcome.unanswerable_refused is not None
    assert outcome.unanswerable_refused > 0.99


def test_without_them_it_is_lowered_until_few_are_refused_and_never_raised():
    answerable = np.linspace(0.2, 1.0, 101)
    lowered = fit_threshold(answerable, NONE, current=0.5)
    assert lowered < 0.5
    assert judge_threshold(lowered, answerable, unanswerable=NONE).answerable_refused <= 0.05
    assert fit_threshold(np.full(100, 0.9), NONE, current=0.5) == 0.5


def test_a_fitted_gate_is_part_of_the_settings():
    asked = make_asked(80, good_leg="keyword")
    report = run(asked, confidences=np.linspace(0.3, 0.9, 80))
    assert report.gate_current.threshold == 0.5
    assert report.settings["context_confidence_threshold"] == report.gate_proposed.threshold < 0.5
