"""Figures of packed contexts, by hand."""

from __future__ import annotations

import pytest

from service.evaluation.contexts import PackedContext, measure_contexts, measure_redundancy


def test_answer_recall_is_the_share_of_relevant_documents_in_the_context():
    contexts = {
        "both": PackedContext(("a", "b", "c"), 90, 1.0, 0.0),
        "half": PackedContext(("b", "d"), 60, 1.5, 0.5),
        "none": PackedContext((), 0, 1.0, 0.0),
    }
    judgements = {name: {"a": 1, "b": 2, "d": 0} for name in contexts}
    values = measure_contexts(contexts, judgements)
    assert values["answer_recall@budget"] == {"both": 1.0, "half": 0.5, "none": 0.0}
    assert values["redundancy"]["half"] == 1.5
    assert values["garbage"]["half"] == 0.5
    assert values["context_tokens"]["both"] == 90


def test_a_sentence_that_stands_twice_is_paid_twice():
    once = "Boats return at dusk."
    assert measure_redundancy(once, [once]) == 1
    twice = f"{once} {once}"
    assert measure_redundancy(twice, [once, once]) == pytest.approx(2, abs=0.35)
