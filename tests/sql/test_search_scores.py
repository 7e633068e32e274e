"""The formulas of the scores, pinned by numbers."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from service.db.engine import owner_transaction
from service.db.search import (
    bm25_search_nodes,
    explain_hybrid_search,
    hybrid_search_nodes,
    vector_search_nodes,
)
from service.types import Hit
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import at_cosine, searching, vector

EAST = vector(1)


@pytest.fixture
def acme(make_tenant: MakeTenant) -> str:
    return make_tenant()


def raw_rrf(hit: Hit, *, bm25_weight: float = 0.4, vector_weight: float = 0.6) -> float:
    return hit.combined_score * (bm25_weight + vector_weight) / 61


def test_a_node_first_in_both_legs_has_the_combined_score_one(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(
        acme,
        [make_node("a", "apple"), make_node("b", "pear")],
        embeddings=[EAST, at_cosine(0.5)],
    )

    with searching(database, acme) as connection:
        first, second = hybrid_search_nodes(
            connection, [acme], query_text="apple", query_embedding=EAST
        )
        weighted = [
            hybrid_search_nodes(
                connection,
                [acme],
                query_text="apple",
                query_embedding=EAST,
                bm25_weight=b,
                vector_weight=v,
                rrf_k=k,
                top_k=1,
            )[0].combined_score
            for b, v, k in [(0.1, 0.2, 60), (0.3, 0.7, 10), (7, 3, 1), (1, 1, 99), (0.7, 0.1, 60)]
        ]

    assert first.combined_score == 1.0
    assert raw_rrf(first) == pytest.approx(0.016393, abs=5e-7)
    assert raw_rrf(second) == pytest.approx(0.009677, abs=5e-7)
    assert second.combined_score == pytest.approx(0.6 * 61 / 62)
    assert weighted == [1.0] * 5


def test_a_node_only_first_by_keyword_adds_only_its_keyword_weight(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    made = upsert(
        acme,
        [make_node("a", "pear"), make_node("b", "plum"), make_node("c", "apple")],
        embeddings=[EAST, at_cosine(0.5), None],
    )

    with searching(database, acme) as connection:
        hits = hybrid_search_nodes(connection, [acme], query_text="apple", query_embedding=EAST)

    assert [hit.node_id for hit in hits] == [n.node_id for n in made]
    assert [raw_rrf(hit) for hit in hits] == pytest.approx([0.6 / 61, 0.6 / 62, 0.4 / 61])
    assert raw_rrf(hits[2]) == pytest.approx(0.006557, abs=5e-7)
    assert hits[0].bm25_score == hits[1].bm25_score == 0
    assert hits[2].vector_score is None


def test_the_first_hit_of_a_call_with_one_leg_has_the_combined_score_one(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(
        acme,
        [make_node("a", "apple apple"), make_node("b", "apple pear")],
        embeddings=[EAST, at_cosine(0.5)],
    )

    with searching(database, acme) as connection:
        keyword = hybrid_search_nodes(connection, [acme], query_text="apple")
        near = hybrid_search_nodes(connection, [acme], query_embedding=EAST)
        stop_words = hybrid_search_nodes(
            connection, [acme], query_text="of the", query_embedding=EAST
        )

    assert [hit.combined_score for hit in keyword] == pytest.approx([1.0, 61 / 62])
    assert [hit.vector_score for hit in keyword] == [None, None]
    assert [hit.combined_score for hit in near] == pytest.approx([1.0, 61 / 62])
    assert [hit.bm25_score for hit in near] == [0, 0]
    assert stop_words == near


def test_a_leg_of_weight_zero_does_not_run_but_its_score_is_shown(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(
        acme,
        [make_node("a", "apple"), make_node("b", "pear")],
        embeddings=[EAST, at_cosine(0.5)],
    )

    with searching(database, acme) as connection:
        keyword = explain_hybrid_search(
            connection, [acme], query_text="apple", query_embedding=EAST, vector_weight=0
        )
        near = explain_hybrid_search(
            connection, [acme], query_text="apple", query_embedding=EAST, bm25_weight=0
        )

    assert [(h.bm25_rank, h.vector_rank) for h in keyword.hits] == [(1, None)]
    assert keyword.hits[0].vector_score == pytest.approx(1)
    assert keyword.vector_path is None
    assert [(h.bm25_rank, h.vector_rank) for h in near.hits] == [(None, 1), (None, 2)]
    assert near.hits[0].bm25_score == keyword.hits[0].bm25_score > 0
    assert near.hits[0].combined_score == keyword.hits[0].combined_score == 1.0


def test_bm25_of_a_tiny_corpus_is_what_the_textbook_gives(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    texts = ["apple banana", "apple apple cherry", "banana cherry date date"]
    made = upsert(acme, [make_node(text, text, lang="xx") for text in texts])
    ids = {n.external_id: n.node_id for n in made}
    # N = 3, the average length is 3; apple stands in 2 nodes, date in 1.
    apple, date = log(1 + 1.5 / 2.5), log(1 + 2.5 / 1.5)

    with searching(database, acme) as connection:
        found = bm25_search_nodes(connection, [acme], query_text="apple date")
        explained = explain_hybrid_search(connection, [acme], query_text="date cherry unseen")

    assert {node.node_id: node.score for node in found} == pytest.approx(
        {
            ids[texts[0]]: apple * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)),
            ids[texts[1]]: apple * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 3)),
            ids[texts[2]]: date * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)),
        },
        abs=1e-9,
    )
    assert [round(node.score, 6) for node in found] == [1.233042, 0.646255, 0.544215]
    for hit in explained.hits:
        assert sum(hit.terms.values()) == hit.bm25_score
    assert explained.hits[0].terms.keys() == {"cherry", "date"}
    assert explained.hits[1].terms.keys() == {"cherry"}


def test_convex_fusion_is_the_weighted_mean_of_both_scores_over_their_best(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(
        acme,
        [
            make_node("a", "apple apple apple"),
            make_node("b", "apple pear plum"),
            make_node("c", "pear plum cherry"),
            make_node("d", "apple cherry quince"),
        ],
        embeddings=[at_cosine(-0.5), at_cosine(0.8), at_cosine(0.25), None],
    )

    with searching(database, acme) as connection:
        hits = hybrid_search_nodes(
            connection,
            [acme],
            query_text="apple",
            query_embedding=EAST,
            fusion="convex",
            bm25_weight=1,
            vector_weight=3,
        )

    best = max(hit.bm25_score for hit in hits)
    nearest = max(hit.vector_score for hit in hits if hit.vector_score is not None)
    assert len(hits) == 4
    assert nearest == pytest.approx(0.8, abs=1e-3)
    for hit in hits:
        cosine = -1 if hit.vector_score is None else hit.vector_score
        expected = 0.25 * hit.bm25_score / best + 0.75 * (cosine + 1) / (nearest + 1)
        assert hit.combined_score == pytest.approx(expected, abs=1e-12)


def test_ties_break_on_node_id(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    made = upsert(
        acme, [make_node(name, "apple") for name in "dacbe"], embeddings=[vector(1, 1)] * 5
    )
    crossed = upsert(
        acme,
        [make_node("x", "quince quince quince"), make_node("y", "quince quince pear")],
        embeddings=[vector(0, 0, 0.9, 0.1), vector(0, 0, 1)],
    )
    ids = sorted(node.node_id for node in made)

    with searching(database, acme) as connection:
        keyword = bm25_search_nodes(connection, [acme], query_text="apple")
        near = vector_search_nodes(connection, [acme], query_embedding=EAST, top_k=5)
        both = hybrid_search_nodes(
            connection, [acme], query_text="apple", query_embedding=EAST, top_k=3
        )
        swapped = hybrid_search_nodes(
            connection,
            [acme],
            query_text="quince",
            query_embedding=vector(0, 0, 1),
            top_k=2,
            bm25_weight=0.5,
            vector_weight=0.5,
        )

    assert [n.node_id for n in keyword] == [n.node_id for n in near] == ids
    assert [hit.node_id for hit in both] == ids[:3]
    assert swapped[0].combined_score == swapped[1].combined_score < 1
    assert [hit.node_id for hit in swapped] == sorted(n.node_id for n in crossed)


def test_a_score_is_shown_for_a_node_the_leg_itself_did_not_reach(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    wordy = [make_node(f"w{i}", "apple apple") for i in range(110)]
    near = [make_node(f"v{i}", "pear pear") for i in range(110)]
    nearest = make_node("nearest", "apple " + "pear " * 60)
    wordiest = make_node("wordiest", "apple apple apple")
    made = upsert(
        acme,
        [*wordy, *near, nearest, wordiest],
        embeddings=[*[None] * 110, *[at_cosine(0.5)] * 110, EAST, at_cosine(-0.5)],
    )
    ids = {n.external_id: n.node_id for n in made}

    with searching(database, acme) as connection:
        explained = explain_hybrid_search(
            connection,
            [acme],
            query_text="apple",
            query_embedding=EAST,
            bm25_weight=0.5,
            vector_weight=0.5,
        )

    hits = {hit.node_id: hit for hit in explained.hits}
    assert hits[ids["nearest"]].bm25_rank is None
    assert 0 < hits[ids["nearest"]].bm25_score < hits[ids["wordiest"]].bm25_score
    assert sum(hits[ids["nearest"]].terms.values()) == hits[ids["nearest"]].bm25_score
    assert hits[ids["wordiest"]].vector_rank is None
    assert hits[ids["wordiest"]].vector_score == pytest.approx(-0.5, abs=1e-3)


def test_relevance_cuts_by_its_presets_and_falls_into_its_bands(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    cosines = [0.9, 0.72, 0.55, 0.3, -0.4]
    upsert(
        acme,
        [make_node(f"n{i}", "apple" if i == 4 else "pear") for i in range(5)],
        embeddings=[at_cosine(c) for c in cosines],
    )

    with searching(database, acme) as connection:
        explained = explain_hybrid_search(connection, [acme], query_embedding=EAST)
        kept = [
            len(
                hybrid_search_nodes(
                    connection, [acme], query_embedding=EAST, min_relevance=min_relevance
                )
            )
            for min_relevance in (0, 0.5, 0.6, 0.75, 1)
        ]
        both = explain_hybrid_search(
            connection, [acme], query_text="apple unseen", query_embedding=EAST
        )
        none = explain_hybrid_search(connection, [acme], query_embedding=EAST, min_relevance=0.95)

    assert [h.relevance for h in explained.hits] == pytest.approx(
        [0.9, 0.72, 0.55, 0.3, 0], abs=1e-3
    )
    assert [h.band for h in explained.hits] == ["high", "good", "partial", "low", "low"]
    assert kept == [5, 3, 2, 1, 0]
    # N = 5: apple stands in one node, unseen in none; every length is the average.
    apple, unseen = log(1 + 4.5 / 1.5), log(1 + 5.5 / 0.5)
    wordy = next(hit for hit in both.hits if hit.bm25_score)
    assert wordy.bm25_score == pytest.approx(apple)
    assert wordy.relevance == pytest.approx(0.4 * apple / (apple + unseen))
    assert none.hits == ()
    assert none.shortfall is not None
    assert "min_relevance" in none.shortfall


def test_an_embedder_profile_changes_relevance_and_never_the_cosine(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(
        acme,
        [make_node("a", "apple"), make_node("b", "pear"), make_node("c", "plum")],
        embeddings=[at_cosine(0.8), at_cosine(0.4), at_cosine(0.1)],
        embedder_version="toy@1",
    )

    def explain() -> list[tuple[float | None, float]]:
        with searching(database, acme) as connection:
            explained = explain_hybrid_search(connection, [acme], query_embedding=EAST)
        return [(hit.vector_score, hit.relevance) for hit in explained.hits]

    before = explain()
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "insert into contextforge.embedder_profiles values"
            " ('other@1', 8, '{0,1}', '{1,1}'), ('toy@1', 8, '{0.2,0.6}', '{0.3,0.9}')"
        )
    after = explain()

    assert [cosine for cosine, _ in after] == [cosine for cosine, _ in before]
    assert [relevance for _, relevance in before] == pytest.approx([0.8, 0.4, 0.1], abs=1e-3)
    assert [relevance for _, relevance in after] == pytest.approx([0.9, 0.6, 0.3], abs=2e-3)


def test_vectors_shorter_than_the_column_keep_their_cosines(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    stored = [vector(*v, dim=3) for v in [(1, 2, 3), (-1, 0.5, 2), (3, -1, 0), (0, 0, -1)]]
    query = vector(0.5, 1, 2, dim=3)
    made = upsert(
        acme,
        [make_node(f"n{i}", "apple") for i in range(4)],
        embeddings=stored,
        embedder_version="three@1",
    )

    with searching(database, acme) as connection:
        found = vector_search_nodes(connection, [acme], query_embedding=query)
        kept = vector_search_nodes(
            connection, [acme], query_embedding=query * 1000, similarity_threshold=0.5
        )

    expected = {
        node.node_id: float(v @ query / np.linalg.norm(v) / np.linalg.norm(query))
        for node, v in zip(made, stored, strict=True)
    }
    assert {n.node_id: n.score for n in found} == pytest.approx(expected, abs=2e-3)
    assert kept == found[:2]
