"""The quality of a text, line by line of its table, and the filter that uses it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.quality import STOP_WORDS, filter_quality, score_text
from tests.candidates import ids, make_candidate


def words(count: int, *first: str) -> str:
    return " ".join([*first, *["filler"] * (count - len(first))])


QUESTION = "quantum entanglement"
BOTH = ("quantum", "entanglement")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See also.", 0.0),
        (words(19, *BOTH), 0.0),
        (words(20), 0.26),
        (words(50), 0.35),
        (words(50, "quantum"), 0.45),
        (words(50, *BOTH), 0.55),
        (words(100), 0.50),
        (words(200), 0.80),
        (words(200, *BOTH), 1.0),
        (words(1000), 0.80),
        (words(1000, *BOTH), 1.0),
    ],
)
def test_the_table_of_scores(text: str, expected: float):
    assert score_text(text, QUESTION) == pytest.approx(expected)


def test_33_words_without_overlap_are_left_out_and_34_stay():
    assert score_text(words(33), QUESTION) == pytest.approx(0.299)
    assert score_text(words(34), QUESTION) == pytest.approx(0.302)
    short = make_candidate(1, content=words(33))
    long = make_candidate(2, content=words(34))
    result = filter_quality([short, long], question=QUESTION)
    assert ids(result.candidates) == [2]
    assert result.drops[0].node_id == 1
    assert result.drops[0].reason == "quality 0.299 is below 0.3"


def test_a_score_at_the_threshold_passes():
    kept = filter_quality(
        [make_candidate(1, content=words(50))], question=QUESTION, score=lambda *_: 0.3
    )
    assert ids(kept.candidates) == [1]


def test_punctuation_and_case_do_not_hide_a_keyword():
    text = words(50, "(Quantum),", "ENTANGLEMENT!")
    assert score_text(text, "What is “quantum” entanglement?") == pytest.approx(0.55)


def test_a_question_of_stop_words_alone_adds_nothing():
    assert score_text(words(50, "the", "is", "of"), "what is the of?") == pytest.approx(0.35)


def test_stop_words_are_function_words():
    assert isinstance(STOP_WORDS, frozenset)
    assert 80 <= len(STOP_WORDS) <= 110
    assert {"a", "an", "the", "in", "of", "to", "for", "with", "by", "from", "is"} <= STOP_WORDS
    assert not STOP_WORDS & {"photosynthesis", "quantum", "table", "data", "system", "work"}


def test_a_text_without_spaces_between_words_is_no_stub():
    text = "量子纠缠是量子力学中的一种现象。" * 10
    assert score_text(text, "量子纠缠") > 0.3
    assert score_text(text, "量子纠缠") > score_text(text, "光合作用")


@pytest.mark.parametrize("node_type", ["field", "qa_example", "table", "metric"])
def test_short_kinds_of_nodes_are_not_judged(node_type: str):
    field = make_candidate(1, content="customer_email", node_type=node_type)
    assert ids(filter_quality([field], question=QUESTION).candidates) == [1]


@pytest.mark.parametrize("node_type", ["section", "article"])
def test_sections_and_articles_are_judged(node_type: str):
    stub = make_candidate(1, content="See also.", node_type=node_type)
    assert filter_quality([stub], question=QUESTION).candidates == []


@given(st.text(max_size=400), st.text(max_size=80))
def test_a_score_is_between_0_and_1(content: str, question: str):
    assert 0.0 <= score_text(content, question) <= 1.0
