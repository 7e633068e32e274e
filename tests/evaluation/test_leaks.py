"""The leak guard knows a question again however it is written, and says which."""

from __future__ import annotations

import pytest

from service.errors import LeakedQuestions
from service.synthesis.leaks import find_leaks, fold_question, refuse_leaks


@pytest.mark.parametrize(
    "example",
    [
        "How many boats are there?",
        "how MANY boats are there",
        "  How many\tboats,  are there?! ",
        "How many boats are there？",  # noqa: RUF001
    ],
)
def test_case_punctuation_and_spacing_do_not_hide_a_question(example: str):
    assert find_leaks(["How many boats are there?"], [example]) == ["How many boats are there?"]


@pytest.mark.parametrize("example", ["How many boats were there?", "boats", "", "?!"])
def test_another_question_is_no_leak(example: str):
    assert find_leaks(["How many boats are there?", "?!"], [example]) == []


def test_the_refusal_counts_and_names_the_first():
    asked = [f"question number {number}?" for number in range(7)]
    examples = [question.upper() for question in asked[2:]]
    with pytest.raises(LeakedQuestions) as caught:
        refuse_leaks(asked, examples, source="tenant acme")
    assert caught.value.status == 409
    assert caught.value.message.startswith("5 of the questions are among the few-shot examples")
    assert '"question number 2?"' in caught.value.message
    assert "question number 6" not in caught.value.message


def test_nothing_is_refused_without_a_leak():
    refuse_leaks(["a b"], ["b a"], source="here")


def test_letters_of_every_language_count():
    assert fold_question("Wie groß ist das Äußere?") == fold_question("wie GROSS ist das äußere")
    assert fold_question("何時ですか") != ""
