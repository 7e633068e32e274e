"""What retrieval reads: search and nodes in one statement, scores by id, titles, tenant states."""

from __future__ import annotations

import pytest

from service.db.candidates import (
    Phrasing,
    SearchPlan,
    describe_search,
    read_tenant_states,
    read_titled_nodes,
    score_candidates,
    search_candidates,
    search_pools,
)
from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import delete_nodes, upsert_links
from service.db.search import hybrid_search_nodes
from service.errors import Forbidden
from service.types import LinkDraft, SearchFilters
from tests.candidates import with_cosine
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

ASKED = Phrasing("parcel", with_cosine(1.0))


@pytest.fixture
def filled(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> str:
    """A tenant with three nodes about parcels, and another with one more."""
    tenant = make_tenant("acme")
    nodes = [
        make_node("a", "parcel tracking", title="A", metadata={"area": "shipping"}),
        make_node("b", "parcel parcel insurance", title="B", header="Costs", lang="en"),
        make_node("c", "invoices", title="C"),
    ]
    upsert(
        tenant,
        nodes,
        embeddings=[with_cosine(0.9), with_cosine(0.6, axis=2), with_cosine(0.1, axis=3)],
        embedder_version="axis@1/8",
    )
    other = make_tenant("other")
    upsert(other, [make_node("x", "parcel of another")], embeddings=[with_cosine(1.0)])
    return tenant


def state_of(database: LiveDatabase, tenant: str) -> tuple[int, ...]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        [state] = read_tenant_states(connection, [tenant])
    return state.newest_write


def test_a_candidate_is_the_hit_of_the_search_with_its_node(database: LiveDatabase, filled: str):
    with tenant_transaction(database.engine, [filled]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=SearchPlan((filled,)))
        hits = hybrid_search_nodes(
            connection, [filled], query_text=ASKED.text, query_embedding=ASKED.embedding
        )
    assert [
        (each.node.node_id, each.bm25_score, each.vector_score, each.combined_score)
        for each in found
    ] == [(hit.node_id, hit.bm25_score, hit.vector_score, hit.combined_score) for hit in hits]
    by_name = {each.node.external_id: each for each in found}
    assert by_name["a"].node.metadata == {"area": "shipping"}
    assert by_name["b"].node.header == "Costs"
    assert by_name["a"].score == by_name["a"].combined_score
    assert by_name["a"].embedding is None


def test_each_phrasing_has_a_list_of_its_own(database: LiveDatabase, filled: str):
    phrasings = [ASKED, Phrasing("invoices", None), Phrasing("nothing like it", None)]
    with tenant_transaction(database.engine, [filled]) as connection:
        lists = search_candidates(connection, phrasings, plan=SearchPlan((filled,)))
    assert [[each.node.external_id for each in found] for found in lists[1:]] == [["c"], []]
    assert len(lists[0]) == 3


def test_hits_beyond_those_to_read_come_with_their_scores_alone(
    database: LiveDatabase, filled: str
):
    with tenant_transaction(database.engine, [filled]) as connection:
        [whole] = search_candidates(connection, [ASKED], plan=SearchPlan((filled,)))
        [found, none] = search_pools(
            connection, [ASKED, Phrasing("unheard of")], plan=SearchPlan((filled,), read=1)
        )
    assert found.candidates == whole[:1]
    assert [(each.node_id, each.score) for each in found.beyond] == [
        (each.node.node_id, each.score) for each in whole[1:]
    ]
    assert (none.candidates, none.beyond) == ([], [])


def test_embeddings_come_along_when_asked_for(database: LiveDatabase, filled: str):
    plan = SearchPlan((filled,), with_embeddings=True)
    with tenant_transaction(database.engine, [filled]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=plan)
    [first] = [each for each in found if each.node.external_id == "a"]
    assert first.embedding == pytest.approx(with_cosine(0.9), abs=1e-3)


def test_confidence_is_the_cosine_on_the_scale_of_the_tenants_embedder(
    database: LiveDatabase, filled: str
):
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "insert into contextforge.embedder_profiles"
            " (embedder_version, dimension, raw_cosines, calibrated_cosines)"
            " values ('axis@1/8', 8, '{0, 0.6, 1}', '{0, 0.8, 1}')"
        )
    with tenant_transaction(database.engine, [filled]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=SearchPlan((filled,)))
    by_name = {each.node.external_id: each for each in found}
    assert by_name["b"].vector_score == pytest.approx(0.6, abs=1e-3)
    assert by_name["b"].confidence == pytest.approx(0.8, abs=1e-3)


def test_without_a_profile_confidence_is_the_cosine(database: LiveDatabase, filled: str):
    with tenant_transaction(database.engine, [filled]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=SearchPlan((filled,)))
    assert [each.confidence for each in found] == [each.vector_score for each in found]


def test_filters_hold_for_every_phrasing(database: LiveDatabase, filled: str):
    plan = SearchPlan((filled,), filters=SearchFilters(metadata={"area": "shipping"}))
    with tenant_transaction(database.engine, [filled]) as connection:
        lists = search_candidates(connection, [ASKED, ASKED], plan=plan)
    assert [[each.node.external_id for each in found] for found in lists] == [["a"], ["a"]]


def test_another_tenants_nodes_are_never_read(database: LiveDatabase, filled: str):
    with (
        pytest.raises(Forbidden, match="may not see tenant"),
        tenant_transaction(database.engine, [filled]) as connection,
    ):
        search_candidates(connection, [ASKED], plan=SearchPlan(("other",)))
    with tenant_transaction(database.engine, ["other"]) as connection:
        [theirs] = search_candidates(connection, [ASKED], plan=SearchPlan(("other",)))
        foreign = [each.node.node_id for each in theirs]
    with tenant_transaction(database.engine, [filled]) as connection:
        plan = SearchPlan((filled,))
        assert score_candidates(connection, ASKED, plan=plan, node_ids=foreign) == []
        assert read_titled_nodes(connection, ["other"], titles=["x", ""]) == []
        assert read_tenant_states(connection, ["other"]) == []


def test_both_tenants_are_searched_when_both_may_be_seen(database: LiveDatabase, filled: str):
    with tenant_transaction(database.engine, [filled, "other"]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=SearchPlan((filled, "other")))
    assert {each.node.tenant_id for each in found} == {filled, "other"}


def test_nodes_by_id_have_the_scores_a_search_gives_them(database: LiveDatabase, filled: str):
    plan = SearchPlan((filled,))
    with tenant_transaction(database.engine, [filled]) as connection:
        [found] = search_candidates(connection, [ASKED], plan=plan)
        node_ids = [each.node.node_id for each in reversed(found)]
        scored = score_candidates(connection, ASKED, plan=plan, node_ids=[*node_ids, 999_999])
    assert [each.node.node_id for each in scored] == node_ids
    for one, other in zip(scored, reversed(found), strict=True):
        assert one.node == other.node
        assert one.bm25_score == pytest.approx(other.bm25_score)
        assert one.vector_score == pytest.approx(other.vector_score, abs=1e-6)


def test_titles_bring_articles_and_sections_in_document_order(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
):
    tenant = make_tenant("books")
    upsert(
        tenant,
        [
            make_node("one", "whole one", title="One", searchable=False),
            make_node("one#2", "second", title="One", parent="one", order_index=2),
            make_node("one#1", "first", title="One", parent="one", order_index=1),
            make_node("two", "whole two", title="Two"),
            make_node("secret", "hidden", title="Two", acl=["board"]),
        ],
    )
    with tenant_transaction(database.engine, [tenant]) as connection:
        nodes = read_titled_nodes(connection, [tenant], titles=["TWO", "one"])
        board = read_titled_nodes(connection, [tenant], titles=["two"], acl_groups=["board"])
    assert [node.external_id for node in nodes] == ["two", "one", "one#1", "one#2"]
    assert {node.external_id for node in board} == {"two", "secret"}


def test_the_described_statement_runs_as_it_is_written(database: LiveDatabase, filled: str):
    plan = SearchPlan((filled,), filters=SearchFilters(metadata={"area": "it's"}), top_k=3)
    statement = describe_search(plan, "parcel's").replace(":'embedding'", "null")
    with tenant_transaction(database.engine, [filled]) as connection:
        assert connection.exec_driver_sql(statement.replace("%", "%%")).all() == []
        plain = describe_search(SearchPlan((filled,)), "parcel").replace(":'embedding'", "null")
        assert len(connection.exec_driver_sql(plain).all()) == 2


def test_every_kind_of_write_changes_the_state_of_its_tenant_alone(
    database: LiveDatabase, filled: str, make_node: MakeNode, upsert: Upsert
):
    seen = [state_of(database, filled)]
    other = state_of(database, "other")

    def changed() -> bool:
        seen.append(state_of(database, filled))
        return seen[-1] not in seen[:-1]

    assert not changed()
    upsert(filled, [make_node("d", "parcel locker", title="D")])
    assert changed()
    upsert(filled, [make_node("d", "parcel locker", title="D", metadata={"new": True})])
    assert changed()
    upsert(filled, [make_node("d", "parcel locker", title="D", metadata={"new": True})])
    assert not changed()
    with tenant_transaction(database.engine, [filled]) as connection:
        upsert_links(connection, filled, links=[LinkDraft("a", "d")])
    assert changed()
    with tenant_transaction(database.engine, [filled]) as connection:
        delete_nodes(connection, filled, external_ids=["d"])
    assert changed()
    with tenant_transaction(database.engine, [filled]) as connection:
        delete_nodes(connection, filled, external_ids=["d"])
    assert not changed()
    assert state_of(database, "other") == other
