"""Which variant a search is, and how two lists become one."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.db.candidates import TenantState
from service.retrieval.cache import make_key
from service.retrieval.experiment import assign_variant, interleave
from service.retrieval.request import RetrievalRequest, frame_request
from service.settings import Settings
from service.types import Experiment
from tests.candidates import ids, make_candidate
from tests.click_model import make_experiment

DRAW = sha256(b"draw").digest()


def state(experiment: Experiment | None, **settings: object) -> TenantState:
    return TenantState("acme", None, settings, (1,), experiment=experiment)  # type: ignore[arg-type]


def frame(experiment: Experiment | None, *, caller: str | None = "me", **changes: object):
    request = RetrievalRequest("boats", ("acme",), changes=changes, caller=caller)
    return frame_request(request, Settings(), states=[state(experiment, hybrid_rrf_k=30)])


def always(variant: str, **changes: object) -> Experiment:
    return make_experiment(share=1e-12 if variant == "a" else 1 - 1e-12, **changes)


# --- assignment ----------------------------------------------------------------------------------


def test_one_caller_and_question_always_get_the_same_variant():
    experiment = make_experiment(share=0.5)
    asked = [assign_variant(experiment, caller="me", text=f"{n}") for n in range(50)]
    again = [assign_variant(experiment, caller="me", text=f" {n}  ") for n in range(50)]
    assert asked == again
    assert {each.variant for each in asked} == {"a", "b"}


def test_the_words_case_and_spaces_do_not_change_the_variant():
    experiment = make_experiment()
    plain, loud = (
        assign_variant(experiment, caller="me", text=text)
        for text in ("what is it", "  What\tIS it ")
    )
    assert plain == loud


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_share_of_traffic_is_the_share_that_was_asked_for(share: float):
    experiment = make_experiment(share=share)
    found = Counter(
        assign_variant(experiment, caller=f"c{n % 100}", text=f"q{n}").variant
        for n in range(10_000)
    )
    assert found["b"] / 10_000 == pytest.approx(share, abs=0.015)


def test_another_experiment_deals_anew():
    first, second = make_experiment(), make_experiment(experiment_id=UUID(int=8))
    same = [
        assign_variant(first, caller="me", text=f"{n}").variant
        == assign_variant(second, caller="me", text=f"{n}").variant
        for n in range(1000)
    ]
    assert sum(same) / 1000 == pytest.approx(0.5, abs=0.06)


def test_settings_of_b_stand_above_the_tenants_and_below_the_calls():
    assert frame(always("a")).options.rrf_k == 30
    assert frame(always("b")).options.rrf_k == 5
    assert frame(always("b"), rrf_k=7).options.rrf_k == 7


def test_who_is_not_named_takes_part_in_nothing():
    plain = frame(always("b"), caller=None)
    assert (plain.assignment, plain.options.rrf_k) == (None, 30)


def test_a_search_of_several_tenants_takes_part_in_nothing():
    request = RetrievalRequest("boats", ("acme", "globex"), caller="me")
    states = [state(always("b")), TenantState("globex", None, {}, (1,))]
    assert frame_request(request, Settings(), states=states).assignment is None


def test_variants_never_share_what_is_remembered():
    alike = {"settings": {"hybrid_rrf_k": 30}}  # no difference but the name
    a, b = frame(always("a", **alike)), frame(always("b", **alike))
    assert a.options == b.options
    assert make_key(a) != make_key(b) != make_key(frame(None))


def test_an_interleaved_search_asks_for_both_variants():
    both = frame(always("b", interleaved=True))
    assert both.assignment is not None
    assert both.rival is not None
    assert (both.assignment.variant, both.options.rrf_k, both.rival.options.rrf_k) == (
        "interleaved",
        30,
        5,
    )
    assert frame(always("a", interleaved=True)).rival is None


# --- interleaving --------------------------------------------------------------------------------

lists = st.lists(st.integers(1, 12), unique=True, max_size=8)


@given(ours=lists, theirs=lists, seed=st.integers(0, 1000))
def test_a_draft_shows_each_node_once_and_neither_team_leads_by_more_than_one(
    ours: list[int], theirs: list[int], seed: int
):
    drafted = interleave(
        [make_candidate(each) for each in ours],
        [make_candidate(each) for each in theirs],
        draw=sha256(str(seed).encode()).digest(),
    )
    shown = ids(drafted.candidates)
    assert len(shown) == len(set(shown)) == max(len(ours), len(theirs))
    assert set(shown) == set(drafted.teams)
    if len(ours) == len(theirs):
        teams = Counter(drafted.teams.values())
        assert abs(teams["a"] - teams["b"]) <= 1


def test_each_team_picks_its_best_first():
    drafted = interleave(
        [make_candidate(each) for each in (1, 2, 3, 4)],
        [make_candidate(each) for each in (9, 8, 7, 6)],
        draw=DRAW,
    )
    for team, order in {"a": [1, 2, 3, 4], "b": [9, 8, 7, 6]}.items():
        own = [each for each in ids(drafted.candidates) if drafted.teams[each] == team]
        assert own == order[: len(own)]


def test_equal_lists_give_both_teams_the_first_place_equally_often():
    same = [make_candidate(each) for each in (1, 2, 3)]
    first = Counter(
        interleave(same, same, draw=sha256(f"{n}".encode()).digest()).teams[1] for n in range(2000)
    )
    assert first["a"] / 2000 == pytest.approx(0.5, abs=0.04)


def test_the_same_search_is_drafted_the_same_way():
    ours, theirs = ([make_candidate(n) for n in range(k, k + 5)] for k in (1, 3))
    assert interleave(ours, theirs, draw=DRAW) == interleave(ours, theirs, draw=DRAW)
