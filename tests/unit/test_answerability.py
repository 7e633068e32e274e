"""What makes a text look like an answer: the question's words together, in the form it asks for."""

from __future__ import annotations

import pytest

from service.packing.answerability import Answerability, measure_answerability, read_question


def judge(question: str, *bodies: str, heading: str = "") -> list[Answerability]:
    return measure_answerability(read_question(question), bodies, headings=[heading] * len(bodies))


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("When was the tower built?", "date"),
        ("What year did the mill burn?", "date"),
        ("How many boats are there?", "number"),
        ("Who keeps the light?", "name"),
        ("Where is the mill?", "name"),
        ("How do I tie a bowline?", "list"),
        ("What is a barometer?", "definition"),
        ("Which boats may leave at night?", None),
    ],
)
def test_a_question_tells_the_form_of_its_answer(question: str, form: str | None) -> None:
    assert read_question(question).form == form


@pytest.mark.parametrize(
    ("question", "with_form", "without"),
    [
        ("When was the tower built?", "The tower was built in 1887.", "The tower was built well."),
        ("How many boats came?", "Of boats came 40 in all.", "Of boats came a lot in all."),
        ("Who built the tower?", "It was Ana Rey who built the tower.", "They built the tower."),
        ("How to paint a boat?", "To paint a boat:\n- sand it", "To paint a boat is work."),
        ("What is a quay?", "A quay is a wall to land at.", "The quay needs new stones."),
    ],
)
def test_the_form_that_was_asked_for_counts(question: str, with_form: str, without: str) -> None:
    better, worse = judge(question, with_form, without)
    assert better.agreement == pytest.approx(worse.agreement)
    assert better.form is not None
    assert worse.form is None
    assert better.strength > worse.strength > 0


def test_words_that_stand_together_count_more_than_words_far_apart() -> None:
    filler = "Nothing of that sort happens here at all. " * 10
    together, apart = judge(
        "Which keeper painted the lantern?",
        f"{filler}The keeper painted the lantern. {filler}",
        f"The keeper slept. {filler}Somebody painted. {filler}A lantern stood there.",
    )
    assert together.agreement == pytest.approx(1)
    assert apart.agreement < 0.6
    place = f"{filler}The keeper painted".index("keeper")
    assert together.start == place


def test_words_that_every_text_has_weigh_little() -> None:
    texts = ["The boat has a mast.", "The boat has a keel.", "The boat has oars.", "The boat."]
    with_rare, with_common, *_ = judge("Which boat has the mast?", *texts)
    assert with_rare.agreement > 2 * with_common.agreement


def test_a_word_is_found_with_another_ending_but_not_inside_another_word() -> None:
    ending, inside, longer = judge("Which arts?", "An art.", "A party.", "An artichoke.")
    assert ending.agreement == pytest.approx(1)
    assert (inside.agreement, longer.agreement) == (0, 0)


def test_words_are_found_behind_quotes_brackets_hyphens_and_line_ends() -> None:
    for text in ('"tide', "(tide)", "spring-tide", "the\ntide", "land/tide"):
        assert judge("Which tide?", text)[0].agreement == pytest.approx(1)


def test_chinese_words_are_found_without_spaces() -> None:
    found, missing = judge("潮汐表在哪里", "门边挂着潮汐表。", "船长很忙。")
    assert found.agreement > missing.agreement


def test_a_heading_with_the_words_of_the_question_counts() -> None:
    [plain] = judge("Which tide?", "It is high.")
    [headed] = judge("Which tide?", "The tide is high.", heading="Guide > Tides")
    assert (plain.strength, plain.header_match) == (0, 0)
    assert headed.header_match == pytest.approx(1)
    assert headed.strength == pytest.approx(1)


def test_without_a_question_the_forms_of_answers_count() -> None:
    rich, poor = judge("", "It is a list of 3 boats, by Ana Rey, 1887:\n- one", "hm")
    assert rich.strength == pytest.approx(1)
    assert rich.form == "date, number, name, definition, list"
    assert (poor.strength, poor.form) == (0, None)
