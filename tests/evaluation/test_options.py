"""Settings of an evaluation: read from texts, unknown ones refused with what is near."""

from __future__ import annotations

import pytest

from service.errors import InvalidInput, SettingsError
from service.evaluation.options import Retrieval, change_retrieval, list_idle, parse_assignments
from service.settings import Settings


def change(*texts: str, mode: str = "hybrid") -> Retrieval:
    base = Retrieval(mode, Settings())  # type: ignore[arg-type]
    return change_retrieval(base, parse_assignments(texts))


def test_several_settings_stand_in_one_text_or_in_several():
    changed = change("hybrid_keyword_weight=.5, fusion=convex", "top_k=50")
    assert changed.settings.hybrid_keyword_weight == 0.5
    assert changed.settings.hybrid_fusion == "convex"
    assert (changed.top_k, changed.leg_depth) == (50, 250)


def test_what_is_not_named_stays():
    base = Retrieval("vector", Settings(hybrid_rrf_k=7), top_k=33)
    assert change_retrieval(base, {}) == base


def test_a_mode_may_be_named_among_the_settings():
    assert change("mode=bm25").mode == "bm25"
    with pytest.raises(InvalidInput, match='no mode "best"'):
        change("mode=best")


@pytest.mark.parametrize(
    ("text", "near"),
    [("hybrid_fusoin=rrf", "hybrid_fusion"), ("topk=5", "top_k"), ("rrfk=5", "rrf_k")],
)
def test_an_unknown_name_is_refused_with_what_is_near(text: str, near: str):
    with pytest.raises(SettingsError, match=f"did you mean .*{near}"):
        change(text)


def test_settings_that_do_not_concern_retrieval_are_refused():
    with pytest.raises(SettingsError, match="not a setting of retrieval"):
        change("database_url=postgresql://elsewhere/db")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hybrid_keyword_weight=much", "HYBRID_KEYWORD_WEIGHT in --set must be a number"),
        ("fusion=best", "must be rrf or convex"),
        ("top_k=0", "top_k must be a whole number"),
        ("top_k=1001", "at most 1000"),
        ("depth=5001", "at most 5000"),
        ("depth=400", "at least 500 deep"),
        ("keyword_weight=0 vector_weight=0", "must not both be 0"),
        ("fusion", "no setting with a value"),
        ("fusion=", "no setting with a value"),
    ],
)
def test_an_impossible_value_is_refused(text: str, complaint: str):
    with pytest.raises(InvalidInput, match=complaint):
        change(text)


def test_deeper_legs_need_more_hits_than_are_kept():
    changed = change("top_k=10 depth=1000")
    assert (changed.top_k, changed.hits, changed.leg_depth) == (10, 200, 1000)


def test_settings_without_an_effect_are_known():
    given = parse_assignments(["mmr_alpha=.2", "fusion=convex", "rrf_k=5"])
    base = Retrieval("hybrid", Settings())
    assert list_idle(change_retrieval(base, given), given) == ["mmr_alpha", "hybrid_rrf_k"]
    keywords = parse_assignments(["mode=bm25", "fusion=rrf"])
    assert list_idle(change_retrieval(base, keywords), keywords) == ["hybrid_fusion"]


def test_only_what_has_an_effect_is_described():
    assert change("mode=bm25").describe() == {"top_k": 100}
    assert "hybrid_rrf_k" in change("fusion=rrf").describe()
    assert "hybrid_rrf_k" not in change("fusion=convex").describe()
