"""Feedback as judgements, and weights learnt from it: what counts, what one caller cannot do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from service.db.feedback_signals import GivenSignal
from service.errors import InvalidInput, RegressionRefused
from service.evaluation.compare import Interval
from service.evaluation.feedback import (
    MOST_JUDGEMENTS,
    CallerJudgement,
    build_judgements,
    limit_shares,
    weigh_position,
)
from service.evaluation.fusion import FusionPoint
from service.evaluation.learn import (
    Check,
    Learner,
    Learnt,
    check_settings,
    find_point,
    learn_weights,
    refuse_unproven,
    score_variants,
)
from service.evaluation.legs import AskedLegs
from service.settings import Settings
from service.types import Intent, Signal
from tests.evaluation.test_tune import NODES, ask

LEARNER = Learner(Settings(), {})
UNCLEAR = Interval(mean=0.02, low=-0.01, high=0.05, p_value=0.2)


def say(
    signal: Signal = "clicked",
    *,
    caller: str = "ann",
    question: int = 0,
    document: str = "d",
    position: int = 1,
) -> GivenSignal:
    return GivenSignal(str(question), f"words {question}", None, caller, document, signal, position)


# --- judgements -------------------------------------------------------------------------------


def test_a_deeper_place_counts_more_as_fewer_look_at_it_up_to_a_cap():
    assert [weigh_position(place) for place in (1, 3, 7)] == [1, 2, 3]
    assert weigh_position(10_000) == 5


def test_a_caller_counts_once_for_a_question_and_document_by_the_strongest_signal():
    signals = [say(), say("helpful", position=3), say("cited"), say(position=3)]
    assert build_judgements(signals) == [CallerJudgement("0", "ann", {"d": 4.0}, 4.0)]


def test_who_found_it_not_helpful_takes_back_what_he_said():
    assert build_judgements([say("helpful"), say("not_helpful")]) == []


def test_a_document_that_more_found_not_helpful_than_liked_judges_nothing():
    liked = [say(caller="ann"), say(caller="bob")]
    against = [say("not_helpful", caller=name) for name in ("cid", "dan", "eve")]
    assert len(build_judgements([*liked, *against[:2]])) == 2
    assert build_judgements([*liked, *against]) == []


def test_of_a_flood_the_newest_few_count():
    flood = [say(caller="bot", question=number) for number in range(1000)]
    judged = build_judgements([*flood, say(question=2000)])
    assert {each.question_id for each in judged if each.caller == "bot"} == {
        str(number) for number in range(MOST_JUDGEMENTS)
    }
    assert [each.caller for each in judged].count("ann") == 1


@pytest.mark.parametrize("callers", [10, 12, 40])
def test_no_caller_has_more_than_a_tenth_of_the_weight(callers: int):
    judged = [CallerJudgement(f"q{n}", f"c{n}", {"d": 1}, 1.0 + n % 3) for n in range(callers)]
    judged += [CallerJudgement(f"r{n}", "c0", {"d": 5}, 5.0) for n in range(20)]
    weights: dict[str, float] = {}
    for each in limit_shares(judged):
        weights[each.caller] = weights.get(each.caller, 0.0) + each.weight
    assert max(weights.values()) <= 0.1 * sum(weights.values()) + 1e-9
    assert sum(weights.values()) > callers / 2


# --- learning ---------------------------------------------------------------------------------


def make_questions(count: int) -> dict[str, AskedLegs]:
    """Questions for which the first node is best by keywords and the last one by vectors."""
    generator = np.random.default_rng(5)
    asked = {}
    for number in range(count):
        by_vector = [NODES, *(generator.permutation(NODES - 2) + 2), 1]
        asked[str(number)] = ask(
            number, keyword_places=range(1, NODES + 1), vector_places=by_vector
        )
    return asked


def like(asked: Iterable[str], *, callers: int, node: int) -> list[CallerJudgement]:
    """Each question judged by two of the callers in turn, who like one node of it."""
    return [
        CallerJudgement(each, f"caller{(place + shift) % callers}", {f"d{each}-{node}": 1.0}, 1.0)
        for place, each in enumerate(asked)
        for shift in range(min(2, callers))
    ]


def after(learnt: Learnt, intent: Intent = "other") -> FusionPoint:
    """The fusion of an intent once what was learnt is stored."""
    return find_point(Settings(), learnt.settings, intent=intent)


def test_many_honest_callers_move_the_weights_to_the_leg_they_like():
    asked = make_questions(60)
    by_keyword = learn_weights(asked, like(asked, callers=12, node=1), learner=LEARNER)
    by_vector = learn_weights(asked, like(asked, callers=12, node=NODES), learner=LEARNER)
    for learnt in (by_keyword, by_vector):
        assert learnt.proposals[0].improves
        assert learnt.proposals[0].gain.low > 0
    assert after(by_keyword).keyword_weight > 0.5
    assert after(by_vector).vector_weight > 0.6


def test_one_caller_that_floods_changes_nothing():
    asked = make_questions(60)
    honest = like(list(asked)[:45], callers=12, node=1)
    for node in (1, NODES // 2, NODES):
        # As much as is let through of a flood, of the greatest weight there is.
        poison = [
            CallerJudgement(str(number), "bot", {f"d{number}-{node}": 10.0}, 10.0)
            for number in range(60 - MOST_JUDGEMENTS, 60)
        ]
        clean = learn_weights(asked, honest, learner=LEARNER)
        assert after(clean).keyword_weight > 0.5
        poisoned = learn_weights(asked, [*honest, *poison], learner=LEARNER)
        assert poisoned.settings == clean.settings


def test_one_caller_cannot_move_weights_that_suit_the_others():
    asked = make_questions(60)
    learner = Learner(Settings(), {"hybrid_keyword_weight": 1.0, "hybrid_vector_weight": 0.0})
    honest = like(list(asked)[:45], callers=12, node=1)
    poison = [
        CallerJudgement(str(number), "bot", {f"d{number}-{NODES}": 10.0}, 10.0)
        for number in range(40, 60)
    ]
    assert learn_weights(asked, [*honest, *poison], learner=learner).settings == {}


def test_an_intent_that_differs_gets_weights_of_its_own():
    asked = make_questions(100)
    asked = {
        each: rename(legs, f"error E{1000 + int(each)}" if int(each) < 50 else f"question {each}")
        for each, legs in asked.items()
    }
    by_keyword = like(list(asked)[:50], callers=12, node=1)
    by_vector = like(list(asked)[50:], callers=12, node=NODES)
    learnt = learn_weights(asked, [*by_keyword, *by_vector], learner=LEARNER)
    assert [each.group for each in learnt.proposals] == ["tenant", "lookup", "other"]
    assert after(learnt, "lookup").vector_weight <= 0.5 < after(learnt, "other").vector_weight
    scores = score_variants(
        list(asked.values()),
        {each: {f"d{each}-{1 if int(each) < 50 else NODES}": 1} for each in asked},
        settings=Settings(),
        variants=[{}, learnt.settings],
    )
    assert scores.mean(axis=1)[1] > 0.95 > scores.mean(axis=1)[0]


def test_an_intent_with_too_little_feedback_is_left_out_by_name():
    asked = make_questions(60)
    asked["0"] = rename(asked["0"], "error E1234")
    learnt = learn_weights(asked, like(asked, callers=12, node=1), learner=LEARNER)
    assert learnt.left_out == {"lookup": "1 questions of 2 callers"}


def rename(legs: AskedLegs, text: str) -> AskedLegs:
    return replace(legs, question=replace(legs.question, text=text))


@pytest.mark.parametrize(("questions", "callers"), [(39, 12), (60, 9), (0, 0)])
def test_too_little_feedback_is_refused_with_what_it_takes(questions: int, callers: int):
    asked = make_questions(questions)
    with pytest.raises(InvalidInput, match="40 questions of 10 different callers"):
        learn_weights(asked, like(asked, callers=callers, node=1), learner=LEARNER)


def test_what_does_not_gain_for_certain_or_fails_its_check_is_refused():
    asked = make_questions(60)
    learnt = learn_weights(asked, like(asked, callers=12, node=1), learner=LEARNER)
    judgements = {each: {f"d{each}-{NODES}": 1} for each in asked}
    check = check_settings(
        list(asked.values()), judgements, learner=LEARNER, changes=learnt.settings
    )
    assert check.proposed < check.current
    with pytest.raises(RegressionRefused, match="on 60 judged questions ndcg@10 falls"):
        refuse_unproven(learnt, check)
    refuse_unproven(learnt, Check(60, current=0.5, proposed=0.495))
    refuse_unproven(learnt, None)
    with pytest.raises(InvalidInput, match="not above 0"):
        refuse_unproven(Learnt((replace(learnt.proposals[0], gain=UNCLEAR),), {}), None)
