"""Which intent a question has, and what it changes."""

from __future__ import annotations

import pytest

from service.errors import InvalidInput
from service.retrieval.intent import detect_intent
from service.retrieval.options import (
    RetrievalOptions,
    adapt_options,
    change_options,
    choose_depth,
    choose_pool,
    clamp_results,
    read_options,
)
from service.retrieval.request import choose_options
from service.settings import Settings


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("What is photosynthesis?", "definition"),
        ("Who was Ada Lovelace?", "definition"),
        ("define entropy", "definition"),
        ("What does RRF stand for?", "definition"),
        ("How many nodes may a tenant have?", "measurement"),
        ("What is the population of Lisbon?", "measurement"),
        ("In which year was the bridge built?", "measurement"),
        ("How do I install the package?", "procedure"),
        ("how to reset a password", "procedure"),
        ("What are the steps to migrate?", "procedure"),
        ("customer_email", "lookup"),
        ("where is orders.customer_id used", "lookup"),
        ("error ORA-00942", "lookup"),
        ("customerEmail column", "lookup"),
        ("0x80070005", "lookup"),
        ("Why do leaves turn red?", "exploratory"),
        ("What is the difference between BM25 and TF-IDF?", "exploratory"),
        ("Explain vector search", "exploratory"),
        ("What are the advantages of Citus?", "exploratory"),
        ("How does the gate affect recall?", "exploratory"),
        ("where is my parcel", "other"),
        ("0-dimensional biomaterials show inductive properties.", "other"),
        ("", "other"),
    ],
)
def test_the_intent_of_a_question(question: str, intent: str):
    assert detect_intent(question) == intent


@pytest.mark.parametrize("intent", ["definition", "measurement", "procedure", "lookup"])
def test_a_question_for_one_thing_weighs_words_and_meaning_alike(intent):
    adapted = adapt_options(RetrievalOptions(), intent)
    assert (adapted.bm25_weight, adapted.vector_weight, adapted.k_base) == (0.5, 0.5, 16)


def test_an_exploratory_question_leans_on_meaning():
    adapted = adapt_options(RetrievalOptions(), "exploratory")
    assert (adapted.bm25_weight, adapted.vector_weight, adapted.k_base) == (0.3, 0.7, 12)


def test_a_question_of_no_known_intent_changes_nothing():
    assert adapt_options(RetrievalOptions(), "other") == RetrievalOptions()


def test_adaptive_weights_can_be_switched_off():
    options = RetrievalOptions(adaptive_weights=False)
    assert adapt_options(options, "definition") == options


def test_weights_that_a_call_states_are_kept_for_any_intent():
    stated = change_options(RetrievalOptions(), {"bm25_weight": 0.9, "vector_weight": 0.1})
    assert adapt_options(stated, "definition").bm25_weight == 0.9


def test_fitted_weights_of_an_intent_come_before_its_preset_but_keep_its_pool():
    adapted = adapt_options(RetrievalOptions(), "definition", fitted=(0.9, 0.1))
    assert (adapted.bm25_weight, adapted.vector_weight, adapted.k_base) == (0.9, 0.1, 16)


@pytest.mark.parametrize(
    ("own", "changes", "weights"),
    [
        ({}, {}, (0.7, 0.3)),
        ({"hybrid_keyword_weight": 0.2}, {}, (0.2, 0.6)),
        ({"hybrid_intent_weights": {"definition": [1, 0]}}, {}, (1, 0)),
        ({"hybrid_intent_weights": {"lookup": [1, 0]}}, {}, (0.5, 0.5)),
        (
            {"hybrid_keyword_weight": 0.2, "hybrid_intent_weights": {"definition": [1, 0]}},
            {},
            (1, 0),
        ),
        (
            {"query_adaptive_weights": False, "hybrid_intent_weights": {"definition": [1, 0]}},
            {},
            (0.4, 0.6),
        ),
        ({"hybrid_intent_weights": {"definition": [1, 0]}}, {"bm25_weight": 0.3}, (0.3, 0.6)),
        (
            {"hybrid_intent_weights": {"definition": [1, 0]}},
            {"adaptive_weights": False},
            (0.4, 0.6),
        ),
    ],
)
def test_the_call_comes_before_the_tenants_intents_its_weights_and_the_service(
    own, changes, weights
):
    service = Settings(hybrid_intent_weights={"definition": (0.7, 0.3)})
    options = choose_options(service, own, intent="definition", changes=changes)
    assert (options.bm25_weight, options.vector_weight) == weights


def test_a_tenants_own_intent_weights_do_not_need_the_services_switch():
    service = Settings(query_adaptive_weights=False)
    own = {"hybrid_intent_weights": {"lookup": [1, 0]}}
    assert choose_options(service, own, intent="lookup").bm25_weight == 1
    assert choose_options(service, own, intent="definition").bm25_weight == 0.4


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(InvalidInput, match="no option 'reranke'"):
        change_options(RetrievalOptions(), {"reranke": "mmr"})


def test_the_options_have_the_defaults_of_the_settings():
    assert read_options(Settings()) == RetrievalOptions()


@pytest.mark.parametrize(
    ("options", "max_results", "pool"),
    [
        (RetrievalOptions(), 5, 15),
        (RetrievalOptions(k_base=16), 5, 16),
        (RetrievalOptions(), 20, 40),
        (RetrievalOptions(k_base=30), 5, 30),
        (RetrievalOptions(reranker="crossencoder"), 5, 48),
        (RetrievalOptions(reranker="mmr", rerank_topk=3), 5, 15),
    ],
)
def test_the_pool_is_the_largest_of_what_the_steps_need(options, max_results, pool):
    assert choose_pool(options, max_results) == pool
    assert choose_depth(options, max_results, walks=False) == pool


def test_a_walk_looks_at_more_than_the_pool():
    assert choose_depth(RetrievalOptions(), 5, walks=True) == 100


@pytest.mark.parametrize(("asked", "clamped"), [(-3, 1), (0, 1), (1, 1), (20, 20), (21, 20)])
def test_results_are_clamped_to_1_and_20(asked: int, clamped: int):
    assert clamp_results(asked) == clamped
