"""The fusion of tuning equals hybrid_search_nodes, and its scores are of one tenant alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.db.engine import tenant_transaction
from service.db.evaluation import (
    calibrate_cosines,
    count_nodes,
    list_example_questions,
    name_documents,
    score_nodes,
)
from service.db.search import hybrid_search_nodes
from service.errors import Forbidden
from service.evaluation.beir import Question
from service.evaluation.evaluate import EmbeddedQuestions
from service.evaluation.fusion import FusionPoint, fuse_candidates
from service.evaluation.legs import read_legs
from service.evaluation.searchers import Collection
from service.types import Fusion
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import SMALL_DIM, LiveDatabase
from tests.sql.search_corpus import TEXTS, random_vectors

COPIES = 4  # more nodes than a leg is deep
WEIGHTS = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
QUESTIONS = (
    "a boat in the harbour at night",
    "bread, flour and salt",
    "the winter engine of the captain",
    "zzyzx",
)


@pytest.fixture
def collection(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> Collection:
    """A tenant with four copies of each text, a tenth of them without a vector, and another."""
    texts = [f"{text} {number}" for number in range(COPIES) for text in TEXTS]
    vectors = random_vectors(len(texts))
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        nodes = [make_node(f"d{place}", text) for place, text in enumerate(texts)]
        kept = [vector if place % 10 else None for place, vector in enumerate(vectors)]
        upsert(tenant, nodes, embeddings=kept)
    return Collection(database.engine, "acme")


@pytest.mark.slow
def test_fusion_in_memory_ranks_as_hybrid_search_does(collection: Collection):
    vectors = random_vectors(len(QUESTIONS))
    asked = [Question(text, text, row) for row, text in enumerate(QUESTIONS)]
    legs = read_legs(collection, EmbeddedQuestions(tuple(asked), vectors), depth=100)

    @settings(max_examples=60, deadline=None)
    @given(
        place=st.integers(0, len(QUESTIONS) - 1),
        fusion=st.sampled_from(["rrf", "convex"]),
        weights=st.tuples(WEIGHTS, WEIGHTS).filter(any),
        rrf_k=st.integers(1, 200),
        top_k=st.integers(1, 20),
    )
    def check(
        place: int, fusion: Fusion, weights: tuple[float, float], rrf_k: int, top_k: int
    ) -> None:
        point = FusionPoint(fusion, *weights, rrf_k)
        with tenant_transaction(collection.engine, ["acme"]) as connection:
            hits = hybrid_search_nodes(
                connection,
                ["acme"],
                query_text=QUESTIONS[place],
                query_embedding=vectors[place],
                top_k=top_k,
                bm25_weight=point.keyword_weight,
                vector_weight=point.vector_weight,
                fusion=fusion,
                rrf_k=rrf_k,
            )
        fused = fuse_candidates(legs[place].candidates, point, top_k=top_k)
        assert fused.node_ids.tolist() == [hit.node_id for hit in hits]
        if QUESTIONS[place] != "zzyzx":  # there, the leg that found nothing counts in SQL
            assert fused.scores == pytest.approx([hit.combined_score for hit in hits], abs=1e-12)

    check()


def test_scores_of_given_nodes_are_those_of_the_search_and_of_one_tenant(collection: Collection):
    [vector] = random_vectors(1)
    question = QUESTIONS[0]
    with tenant_transaction(collection.engine, ["acme"]) as connection:
        hits = hybrid_search_nodes(
            connection, ["acme"], query_text=question, query_embedding=vector, top_k=20
        )
        found = score_nodes(
            connection,
            "acme",
            query_text=question,
            query_embedding=vector,
            node_ids=[hit.node_id for hit in hits],
        )
    wanted = {hit.node_id: (hit.bm25_score, hit.vector_score) for hit in hits}
    assert {each.node_id: (each.bm25_score, each.vector_score) for each in found} == wanted
    with tenant_transaction(collection.engine, ["globex"]) as connection:
        assert not score_nodes(
            connection,
            "globex",
            query_text=question,
            query_embedding=vector,
            node_ids=list(wanted),
        )
    with (
        pytest.raises(Forbidden),
        tenant_transaction(collection.engine, ["globex"]) as connection,
    ):
        score_nodes(
            connection, "acme", query_text=question, query_embedding=vector, node_ids=list(wanted)
        )


def test_what_evaluation_reads_of_a_tenant_is_that_tenants(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
):
    make_tenant("acme")
    make_tenant("globex")
    article = make_node("a", "tides", searchable=False)
    section = make_node("a#1", "tides at noon", node_type="section", parent="a")
    example = make_node("e", "select 1", node_type="qa_example", title="When is high tide?")
    done = upsert("acme", [article, section, example])
    upsert("globex", [make_node("b", "engines")])
    ids = {node.external_id: node.node_id for node in done}
    with tenant_transaction(database.engine, ["acme", "globex"]) as connection:
        named = name_documents(connection, "acme", node_ids=ids.values())
        assert named == {ids["a"]: "a", ids["a#1"]: "a", ids["e"]: "e"}
        assert name_documents(connection, "globex", node_ids=ids.values()) == {}
        assert list_example_questions(connection, "acme") == ["When is high tide?"]
        assert list_example_questions(connection, "globex") == []
        assert count_nodes(connection, "acme") == 2
        assert count_nodes(connection, "globex") == 1
    with tenant_transaction(database.engine, ["globex"]) as connection:
        assert name_documents(connection, "acme", node_ids=ids.values()) == {}
        assert list_example_questions(connection, "acme") == []
        assert count_nodes(connection, "acme") == 0


def test_a_cosine_is_calibrated_by_the_tenants_embedder(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
):
    make_tenant("acme")
    make_tenant("globex")
    unit = np.eye(SMALL_DIM, dtype=np.float32)[0]
    upsert("acme", [make_node("a", "x")], embeddings=[unit], embedder_version="fitted")
    upsert("globex", [make_node("a", "x")], embeddings=[unit], embedder_version="other")
    with database.admin.begin() as connection:
        connection.exec_driver_sql(
            "insert into contextforge.embedder_profiles values ('fitted', 8, '{0,1}', '{0.5,1}')"
        )
    with tenant_transaction(database.engine, ["acme", "globex"]) as connection:
        assert calibrate_cosines(connection, "acme", cosines=[0.0, 0.5]) == [0.5, 0.75]
        assert calibrate_cosines(connection, "globex", cosines=[0.0, 0.5]) == [0.0, 0.5]
        assert calibrate_cosines(connection, "acme", cosines=[]) == []
