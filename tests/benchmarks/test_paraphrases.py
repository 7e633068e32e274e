"""The recorded paraphrases: whole and different."""

from __future__ import annotations

import pytest

from benchmarks.paraphrases import PARAPHRASES, read_paraphrases

LONGEST = 300


@pytest.mark.parametrize("name", ["scifact", "hotpotqa"])
def test_each_of_a_hundred_questions_has_two_different_phrasings(name: str) -> None:
    recorded = read_paraphrases(name)
    assert len(recorded) == 100
    for query_id, phrasings in recorded.items():
        assert len({phrasing.casefold() for phrasing in phrasings}) == len(phrasings) == 2, query_id
        assert all(phrasing == phrasing.strip() != "" for phrasing in phrasings), query_id
        assert max(map(len, phrasings)) <= LONGEST, query_id


def test_no_question_is_recorded_twice_and_no_phrasing_serves_two_questions() -> None:
    lines = PARAPHRASES.read_text(encoding="utf-8").splitlines()
    sets = [read_paraphrases(name) for name in ("scifact", "hotpotqa")]
    phrasings = [phrasing for each in sets for pair in each.values() for phrasing in pair]
    assert len(lines) == sum(map(len, sets))
    assert len(set(phrasings)) == len(phrasings)


def test_a_set_without_paraphrases_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no paraphrases of cisi, only of hotpotqa, scifact"):
        read_paraphrases("cisi")
