"""PageRank, the walk and the blend as numbers: networkx is the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.retrieval.graph import (
    WALK_SEEDS,
    choose_seeds,
    compute_pagerank,
    fuse_walk,
    rank_by_graph,
    walk_links,
    weigh_seed,
)
from service.types import Candidate, Links, Node, ScoredNode

Link = tuple[int, int, float]

links_of_any_shape = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.integers(1, 12),
        st.floats(0.01, 100, allow_nan=False, allow_infinity=False),
    ),
    min_size=1,
    max_size=40,
)


def make_links(links: Sequence[Link]) -> Links:
    return Links(
        np.array([link[0] for link in links], dtype=np.int32),
        np.array([link[1] for link in links], dtype=np.int32),
        np.array([link[2] for link in links], dtype=np.float64),
    )


def rank_all(links: Sequence[Link]) -> dict[int, float]:
    computed = compute_pagerank(make_links(links))
    return dict(zip(computed.node_ids.tolist(), computed.ranks.tolist(), strict=True))


def rank_by_reference(links: Sequence[Link]) -> dict[int, float]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    for source, target, weight in links:
        known = graph.get_edge_data(source, target, {"weight": 0.0})["weight"]
        graph.add_edge(source, target, weight=known + weight)
    return dict(nx.pagerank(graph, alpha=0.85, tol=1e-13, max_iter=1000))


def make_candidate(node_id: int, **scores: float) -> Candidate:
    node = Node(
        node_id=node_id,
        tenant_id="acme",
        external_id=str(node_id),
        dataset_name="default",
        node_type="article",
        title="",
        summary="",
        content="",
        metadata={},
        parent_id=None,
        section_path=None,
        order_index=None,
        header=None,
        doc_title=None,
        url=None,
        lang=None,
        space_id=None,
        token_count=None,
        content_hash=b"",
    )
    return replace(Candidate(node, 0.0), **scores)  # type: ignore[arg-type]


# --- PageRank ----------------------------------------------------------------------------------


@given(links_of_any_shape)
def test_ranks_equal_the_reference_and_sum_to_one(links: list[Link]):
    ranks = rank_all(links)
    assert ranks == pytest.approx(rank_by_reference(links), abs=1e-8)
    assert sum(ranks.values()) == pytest.approx(1)


def test_a_dangling_node_and_two_graphs_apart_are_ranked_as_one():
    apart = [(1, 2, 1.0), (3, 4, 1.0), (4, 3, 1.0)]
    ranks = rank_all(apart)
    assert ranks == pytest.approx(rank_by_reference(apart), abs=1e-8)
    assert ranks[2] > ranks[1]
    assert ranks[3] == pytest.approx(ranks[4])


def test_a_heavier_link_hands_on_more():
    ranks = rank_all([(1, 2, 3.0), (1, 3, 1.0)])
    assert ranks[2] > ranks[3]


def test_two_links_between_the_same_nodes_count_as_one_of_their_weights():
    assert rank_all([(1, 2, 1.0), (1, 2, 2.0), (1, 3, 1.0)]) == pytest.approx(
        rank_all([(1, 2, 3.0), (1, 3, 1.0)])
    )


def test_weights_that_no_float_can_sum_are_ranked_all_the_same():
    huge, tiny = 1.7e308, 5e-324
    ranks = rank_all([(1, 2, huge), (1, 3, huge), (4, 2, tiny)])
    assert sum(ranks.values()) == pytest.approx(1)


def test_no_links_have_no_ranks():
    assert rank_all([]) == {}


# --- the walk ----------------------------------------------------------------------------------


def walk(links: Sequence[Link], seeds: dict[int, float]) -> dict[int, float]:
    return {node.node_id: node.score for node in walk_links(make_links(links), seeds)}


def test_the_walk_tends_to_the_personalised_pagerank_of_the_reference():
    links = [(1, 2, 1.0), (2, 3, 2.0), (4, 2, 1.0), (3, 5, 1.0), (5, 6, 1.0)]
    graph: nx.Graph[int] = nx.Graph()
    graph.add_weighted_edges_from(links)
    reference = nx.pagerank(graph, alpha=0.85, personalization={1: 3, 4: 1}, max_iter=1000)
    # Ten rounds leave at most 0.85 ** 10 of the whole unsettled.
    assert walk(links, {1: 3.0, 4: 1.0}) == pytest.approx(reference, abs=0.85**10)


def test_the_walk_goes_against_the_direction_of_links_too():
    assert set(walk([(2, 1, 1.0)], {1: 1.0})) == {1, 2}


def test_the_walk_reaches_two_steps_and_prefers_the_nearer():
    reached = walk([(1, 2, 1.0), (2, 3, 1.0), (7, 8, 1.0)], {1: 1.0})
    assert set(reached) == {1, 2, 3}
    assert reached[2] > reached[3] > 0


def test_a_node_that_two_seeds_lead_to_comes_before_one_that_one_leads_to():
    reached = list(walk([(1, 3, 1.0), (2, 3, 1.0), (2, 4, 1.0)], {1: 1.0, 2: 1.0}))
    assert reached.index(3) < reached.index(4)


def test_a_seed_without_links_stays_in_the_walk_of_the_others():
    assert 9 in walk([(1, 2, 1.0)], {1: 1.0, 9: 1.0})


@pytest.mark.parametrize(("links", "seeds"), [([], {1: 1.0}), ([(1, 2, 1.0)], {1: 0.0})])
def test_without_links_or_weight_there_is_no_walk(links: list[Link], seeds: dict[int, float]):
    assert walk(links, seeds) == {}


def test_equal_nodes_of_a_walk_come_in_the_order_of_their_ids():
    reached = walk_links(make_links([(1, 9, 1.0), (1, 5, 1.0), (1, 7, 1.0)]), {1: 1.0})
    assert [node.node_id for node in reached] == [1, 5, 7, 9]


def test_the_best_candidates_are_the_seeds_by_the_square_of_their_cosine():
    candidates = [make_candidate(n, vector_score=0.5, combined_score=1) for n in range(1, 9)]
    assert choose_seeds(candidates) == dict.fromkeys(range(1, WALK_SEEDS + 1), 0.25)


def test_a_seed_without_a_cosine_weighs_by_its_fused_score_and_none_weighs_less_than_nothing():
    assert weigh_seed(None, 0.5) == 0.25
    assert weigh_seed(-0.2, 0.9) == 0


# --- fusion ------------------------------------------------------------------------------------


def test_the_walk_is_fused_by_its_ranks():
    hits = [ScoredNode(1, 1.0), ScoredNode(2, 0.9)]
    fused = fuse_walk(hits, [ScoredNode(2, 0.3), ScoredNode(3, 0.2)], weight=0.5)
    assert [node.node_id for node in fused] == [2, 1, 3]
    assert [node.score for node in fused] == pytest.approx(
        [(0.9 + 0.5) / 1.5, 1 / 1.5, 0.5 * 61 / 62 / 1.5]
    )


def test_a_walk_without_weight_or_nodes_changes_no_order():
    hits = [ScoredNode(4, 0.9), ScoredNode(2, 0.5)]
    assert fuse_walk(hits, [], weight=0) == hits
    assert [node.node_id for node in fuse_walk(hits, [])] == [4, 2]


# --- the blend ---------------------------------------------------------------------------------


def test_the_documented_example_of_the_blend():
    fluctuation = make_candidate(1, vector_score=0.95)
    mechanics = make_candidate(2, vector_score=0.90)
    ranked = rank_by_graph([fluctuation, mechanics], {1: 0.02, 2: 0.85})
    assert [each.node.node_id for each in ranked] == [2, 1]
    assert [each.score for each in ranked] == pytest.approx([0.885, 0.671])
    assert [each.graph_score for each in ranked] == [0.85, 0.02]


def test_the_cross_encoder_stands_for_the_similarity_once_it_has_spoken():
    [sure, _] = rank_by_graph(
        [make_candidate(1, vector_score=0.9, ce_score=-1000.0), make_candidate(2, ce_score=0.0)],
        {1: 0.0},
    )
    assert sure.node.node_id == 2
    assert sure.score == pytest.approx(0.35)


def test_without_a_cosine_the_score_so_far_is_blended():
    [blended] = rank_by_graph([make_candidate(1, score=0.5)], {1: 1.0})
    assert blended.score == pytest.approx(0.65)


def test_the_score_so_far_can_be_the_basis_of_the_blend():
    [blended] = rank_by_graph(
        [make_candidate(1, score=0.8, vector_score=0.1)],
        {1: 0.5},
        alpha=0.95,
        beta=0.05,
        basis="score",
    )
    assert blended.score == pytest.approx(0.785)


def test_without_ranks_the_candidates_stay_as_they_are():
    candidates = [make_candidate(1, vector_score=0.1), make_candidate(2, vector_score=0.9)]
    assert rank_by_graph(candidates, {}) == candidates


def test_a_candidate_without_links_has_rank_zero_and_ties_break_on_the_node():
    ranked = rank_by_graph([make_candidate(n, vector_score=0.5) for n in (3, 2, 1)], {2: 1.0})
    assert [each.node.node_id for each in ranked] == [2, 1, 3]
    assert ranked[1].graph_score == 0
