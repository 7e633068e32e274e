"""The steps that only compute: gate, merging, documents, diversity, trace."""

from __future__ import annotations

import json

import numpy as np
import pytest

from service.retrieval.diversity import collapse_duplicates, select_diverse
from service.retrieval.gate import judge_confidence
from service.retrieval.graph import rank_by_graph
from service.retrieval.multidoc import choose_documents
from service.retrieval.search import merge_candidates
from service.retrieval.trace import Drop, Recorder, StepResult
from tests.candidates import ids, make_candidate, with_cosine

# --- the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("confidence", "fires"), [(0.5, False), (0.4999, True), (0.9, False)])
def test_the_gate_fires_below_one_half(confidence: float, fires: bool):
    pool = [make_candidate(1, confidence=confidence, cosine=0.1), make_candidate(2, cosine=0.05)]
    assert judge_confidence(pool).fires is fires


def test_the_gate_reads_the_calibrated_cosine_before_the_raw_one():
    assert judge_confidence([make_candidate(cosine=0.45, confidence=0.6)]).confidence == 0.6
    assert judge_confidence([make_candidate(cosine=0.6, confidence=0.45)]).fires


def test_the_gate_takes_the_raw_cosine_where_there_is_no_other():
    assert judge_confidence([make_candidate(cosine=0.49)]).fires
    assert not judge_confidence([make_candidate(cosine=0.5)]).fires


def test_the_gate_fires_on_nothing_and_lets_through_what_has_no_cosine():
    assert judge_confidence([]).fires
    assert not judge_confidence([make_candidate(cosine=None)]).fires


# --- merging -------------------------------------------------------------------------------------


def test_a_node_found_twice_is_kept_once_with_its_best_score():
    merged = merge_candidates(
        [[make_candidate(1, 0.4), make_candidate(2, 0.6)], [make_candidate(1, 0.9)]]
    )
    assert [(each.node.node_id, each.score) for each in merged] == [(1, 0.9), (2, 0.6)]


def test_the_same_place_of_a_document_stored_twice_is_one_node():
    page = "https://example.org/a"
    merged = merge_candidates(
        [
            [
                make_candidate(1, 0.9, url=page, order_index=0),
                make_candidate(2, 0.8, url=page, order_index=0),
                make_candidate(3, 0.7, url=page, order_index=1),
                make_candidate(4, 0.6, parent_id=9, order_index=2),
                make_candidate(5, 0.5, parent_id=9, order_index=2),
            ]
        ]
    )
    assert ids(merged) == [1, 3, 4]


def test_two_tenants_with_the_same_page_keep_a_node_each():
    page = "https://example.org/a"
    mine, theirs = make_candidate(1, url=page), make_candidate(2, url=page, tenant_id="other")
    assert ids(merge_candidates([[mine, theirs]])) == [1, 2]


# --- the graph blend -----------------------------------------------------------------------------


def test_the_blend_example_of_the_documentation():
    fluctuation = make_candidate(1, cosine=0.95)
    mechanics = make_candidate(2, cosine=0.90)
    ranked = rank_by_graph([fluctuation, mechanics], {1: 0.02, 2: 0.85}, alpha=0.7, beta=0.3)
    assert [(each.node.node_id, round(each.score, 3)) for each in ranked] == [
        (2, 0.885),
        (1, 0.671),
    ]


# --- several documents ---------------------------------------------------------------------------


def test_the_best_articles_by_their_best_sections_and_no_more_than_asked_for():
    pool = [
        make_candidate(1, 0.9, parent_id=100),
        make_candidate(2, 0.5, parent_id=200),
        make_candidate(3, 0.5, parent_id=200),
        make_candidate(4, 0.2, parent_id=300),
    ]
    result = choose_documents(pool, num_docs=2, max_sections=2)
    assert ids(result.candidates) == [2, 3, 1]
    assert result.drops == (Drop(4, "beyond the best 2 articles"),)


def test_many_weak_sections_do_not_outweigh_the_best_ones():
    weak = [make_candidate(node_id, 0.3, parent_id=100) for node_id in range(1, 11)]
    strong = make_candidate(50, 0.95, parent_id=200)
    result = choose_documents([*weak, strong], num_docs=1, max_sections=3)
    assert ids(result.candidates) == [50]


def test_sections_beyond_the_third_of_an_article_are_dropped_with_a_reason():
    pool = [make_candidate(node_id, 1 / node_id, parent_id=100) for node_id in range(1, 5)]
    result = choose_documents(pool)
    assert ids(result.candidates) == [1, 2, 3]
    assert result.drops == (Drop(4, "beyond the best 3 sections"),)


def test_irrelevant_sections_are_skipped_but_the_result_is_never_emptied():
    good, poor = make_candidate(1, 0.9, confidence=0.7), make_candidate(2, 0.8, confidence=0.69)
    result = choose_documents([good, poor])
    assert ids(result.candidates) == [1]
    assert result.drops == (Drop(2, "relevance 0.690 is below 0.7"),)
    assert ids(choose_documents([poor]).candidates) == [2]


def test_a_document_without_sections_is_its_own_article():
    pool = [make_candidate(node_id, 1 / node_id) for node_id in range(1, 8)]
    assert ids(choose_documents(pool).candidates) == [1, 2, 3, 4, 5]


# --- diversity -----------------------------------------------------------------------------------


def test_one_node_one_text_and_nearly_one_vector_collapse_to_the_first():
    same = b"same"
    result = collapse_duplicates(
        [
            make_candidate(1, content_hash=same, embedding=with_cosine(1.0)),
            make_candidate(1),
            make_candidate(2, content_hash=same),
            make_candidate(3, embedding=with_cosine(0.99)),
            make_candidate(4, embedding=with_cosine(0.90)),
            make_candidate(5),
        ]
    )
    assert ids(result.candidates) == [1, 4, 5]
    assert [drop.reason for drop in result.drops] == ["says the same as node 1"] * 3


def test_texts_without_a_hash_are_not_the_same_text():
    nodes = [make_candidate(1, content_hash=b""), make_candidate(2, content_hash=b"")]
    assert ids(collapse_duplicates(nodes).candidates) == [1, 2]


def test_mmr_prefers_what_is_new_to_what_is_a_little_better():
    pool = [
        make_candidate(1, 1.0, embedding=with_cosine(1.0)),
        make_candidate(2, 0.95, embedding=with_cosine(0.98)),
        make_candidate(3, 0.7, embedding=with_cosine(0.1)),
    ]
    assert ids(select_diverse(pool, alpha=0.5, top_k=2)) == [1, 3]
    assert ids(select_diverse(pool, alpha=1.0, top_k=2)) == [1, 2]
    assert select_diverse([], alpha=0.5, top_k=2) == []


def test_vectors_of_another_length_are_not_compared():
    odd = np.ones(3, dtype=np.float32)
    nodes = [make_candidate(1, embedding=with_cosine(1.0)), make_candidate(2, embedding=odd)]
    assert ids(collapse_duplicates(nodes).candidates) == [1, 2]


# --- the trace -----------------------------------------------------------------------------------


def test_a_trace_has_every_step_with_its_drops_and_is_plain_json():
    recorder = Recorder("why?", enabled=True)
    drop = Drop(2, "too short")
    recorder.run(
        "quality",
        lambda some: StepResult([some[0]], (drop,), {"threshold": 0.3}, fallback="quality: x"),
        [make_candidate(1), make_candidate(2)],
    )
    trace = recorder.finish()
    assert trace is not None
    told = json.loads(json.dumps(trace.to_json()))
    assert told["question"] == "why?"
    assert told["fallbacks"] == ["quality: x"]
    [step] = told["steps"]
    assert step["step"] == "quality"
    assert [each["node_id"] for each in step["entered"]] == [1, 2]
    assert [each["node_id"] for each in step["left"]] == [1]
    assert step["drops"] == [{"node_id": 2, "reason": "too short"}]
    assert step["notes"] == {"threshold": 0.3}
    assert step["milliseconds"] >= 0


def test_without_a_trace_only_fallbacks_are_remembered():
    recorder = Recorder("why?", enabled=False)
    kept = recorder.run("gate", lambda some: StepResult(list(some), fallback="x"), [])
    assert kept == []
    assert recorder.finish() is None
    assert recorder.fallbacks == ("x",)
