"""Ranks by links: stored per tenant, fresh enough, and nobody else's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Thread

import pytest
from sqlalchemy.exc import InternalError

from service.db.engine import owner_transaction, tenant_transaction
from service.db.ingestion import link_references, replace_references
from service.db.nodes import delete_nodes, upsert_links
from service.db.ranks import (
    claim_ranks,
    list_due_tenants,
    list_link_marks,
    list_top_ranks,
    read_links,
    read_ranks,
    store_ranks,
)
from service.errors import Forbidden, InvalidInput, NotFound
from service.retrieval.ranks import RankMemory, refresh_ranks, update_ranks
from service.types import LinkDraft, NodeRanks, Reference
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

MakeGraph = Callable[..., dict[str, int]]
HOUR = timedelta(hours=1)


@pytest.fixture
def make_graph(
    database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
) -> MakeGraph:
    """make_graph(tenant, "ab bc", nodes="d"): articles with links, by one letter each."""

    def create(tenant: str, links: str, nodes: str = "") -> dict[str, int]:
        make_tenant(tenant)
        letters = sorted({*links, *nodes} - {" "})
        stored = upsert(tenant, [make_node(letter, f"text {letter}") for letter in letters])
        link(database, tenant, links)
        return {node.external_id: node.node_id for node in stored}

    return create


def link(database: LiveDatabase, tenant: str, links: str, weight: float = 1.0) -> None:
    drafts = [LinkDraft(pair[0], pair[1], weight=weight) for pair in links.split()]
    with tenant_transaction(database.engine, [tenant]) as connection:
        upsert_links(connection, tenant, links=drafts)


def stored_ranks(database: LiveDatabase, tenant: str) -> dict[str, float]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        top = list_top_ranks(connection, tenant, limit=100)
    return {node.external_id: node.rank for node in top}


def read(database: LiveDatabase, tenants: list[str], node_ids: list[int]) -> NodeRanks:
    with tenant_transaction(database.engine, tenants) as connection:
        return read_ranks(connection, tenants, node_ids)


def is_due(database: LiveDatabase, tenant: str, older_than: timedelta = HOUR) -> bool:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return bool(list_due_tenants(connection, [tenant], older_than=older_than))


def age(database: LiveDatabase, tenant: str, by: str = "61 minutes") -> None:
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.rank_states set computed_at = computed_at - %s::interval"
            " where tenant_id = %s",
            (by, tenant),
        )


# --- computing ---------------------------------------------------------------------------------


def test_ranks_sum_to_one_over_the_linked_nodes(database: LiveDatabase, make_graph: MakeGraph):
    make_graph("acme", "ab cb bd", nodes="e")
    state = refresh_ranks(database.engine, "acme")
    ranks = stored_ranks(database, "acme")
    assert sum(ranks.values()) == pytest.approx(1)
    assert set(ranks) == {"a", "b", "c", "d"}
    assert state is not None
    assert (state.articles, state.links, state.linked_nodes) == (5, 3, 4)
    assert state.largest_rank == pytest.approx(max(ranks.values()))


def test_the_weights_of_links_are_respected(database: LiveDatabase, make_graph: MakeGraph):
    make_graph("acme", "ab")
    link(database, "acme", "ba", weight=2.0)
    make_graph("globex", "ab ac")
    link(database, "globex", "ab", weight=5.0)
    refresh_ranks(database.engine, "globex")
    ranks = stored_ranks(database, "globex")
    assert ranks["b"] > ranks["c"]


def test_ranks_of_one_tenant_do_not_know_the_links_of_another(
    database: LiveDatabase, make_graph: MakeGraph
):
    acme = make_graph("acme", "ab ac")
    refresh_ranks(database.engine, "acme")
    before = stored_ranks(database, "acme")
    globex = make_graph("globex", "ab cb db eb fb")
    refresh_ranks(database.engine, "globex")
    refresh_ranks(database.engine, "acme", force=True)
    assert stored_ranks(database, "acme") == before
    assert read(database, ["acme"], [*acme.values(), *globex.values()]).shares.keys() == set(
        acme.values()
    )


def test_a_tenant_the_caller_may_not_see_is_refused(database: LiveDatabase, make_graph: MakeGraph):
    nodes = make_graph("acme", "ab")
    make_graph("globex", "ab")
    with pytest.raises(Forbidden), tenant_transaction(database.engine, ["globex"]) as connection:
        read_ranks(connection, ["acme"], list(nodes.values()))
    with pytest.raises(Forbidden), tenant_transaction(database.engine, ["globex"]) as connection:
        store_ranks(connection, "acme", ranks={}, links=0, seen_marks=[])
    with tenant_transaction(database.engine, ["globex"]) as connection:
        assert len(read_links(connection, "acme").sources) == 0
        assert list_link_marks(connection, "acme") == []


def test_ranks_of_a_tenant_that_does_not_exist_are_refused(database: LiveDatabase):
    with pytest.raises(NotFound):
        refresh_ranks(database.engine, "nobody")


def test_a_tenant_with_a_quote_in_no_name_is_refused_before_its_links_are_copied(
    database: LiveDatabase,
):
    with pytest.raises(InvalidInput):
        refresh_ranks(database.engine, "a' or true --")


def test_nodes_and_ranks_must_be_equally_many(database: LiveDatabase, make_graph: MakeGraph):
    nodes = make_graph("acme", "ab")
    with (
        pytest.raises(InvalidInput, match="1 nodes and 0 ranks"),
        tenant_transaction(database.engine, ["acme"]) as connection,
    ):
        connection.exec_driver_sql("select store_ranks('acme', %s, '{}', 1, '{}')", ([nodes["a"]],))


# --- when --------------------------------------------------------------------------------------


def test_fresh_ranks_stay_though_links_changed(database: LiveDatabase, make_graph: MakeGraph):
    make_graph("acme", "ab", nodes="c")
    first = refresh_ranks(database.engine, "acme")
    link(database, "acme", "ac")
    assert refresh_ranks(database.engine, "acme") == first
    assert is_due(database, "acme", older_than=timedelta(0))


def test_old_ranks_stay_while_no_link_changed(database: LiveDatabase, make_graph: MakeGraph):
    make_graph("acme", "ab")
    refresh_ranks(database.engine, "acme")
    link(database, "acme", "ab")
    age(database, "acme", "1 year")
    assert not is_due(database, "acme")


def test_old_ranks_of_changed_links_are_computed_anew_once(
    database: LiveDatabase, make_graph: MakeGraph
):
    make_graph("acme", "ab", nodes="c")
    refresh_ranks(database.engine, "acme")
    link(database, "acme", "ac")
    age(database, "acme")
    state = refresh_ranks(database.engine, "acme")
    assert state is not None
    assert state.links == 2
    age(database, "acme")
    assert not is_due(database, "acme")


def test_every_way_to_change_links_is_noticed(
    database: LiveDatabase, make_graph: MakeGraph, upsert: Upsert, make_node: MakeNode
):
    make_graph("acme", "ab", nodes="c d")

    def change(do: Callable[..., object]) -> bool:
        refresh_ranks(database.engine, "acme", force=True)
        assert not is_due(database, "acme", older_than=timedelta(0))
        with tenant_transaction(database.engine, ["acme"]) as connection:
            do(connection)
        return is_due(database, "acme", older_than=timedelta(0))

    def refer(connection, target="d") -> None:
        references = [Reference("c", "path", target)]
        replace_references(connection, "acme", references=references)
        link_references(connection, "acme")

    heavier = [LinkDraft("a", "b", weight=3)]
    assert change(lambda c: upsert_links(c, "acme", links=heavier))
    assert not change(lambda c: upsert_links(c, "acme", links=heavier))
    assert change(refer)
    assert not change(refer)
    assert change(lambda c: replace_references(c, "acme", references=[Reference("c")]))
    assert change(lambda c: delete_nodes(c, "acme", external_ids=["b"]))
    assert not change(lambda c: delete_nodes(c, "acme", external_ids=["d"]))


def test_a_change_while_ranks_are_computed_is_not_lost(
    database: LiveDatabase, make_graph: MakeGraph
):
    make_graph("acme", "ab", nodes="c")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        marks = list_link_marks(connection, "acme")
        link(database, "acme", "ac")
        store_ranks(connection, "acme", ranks={}, links=1, seen_marks=marks)
    assert is_due(database, "acme", older_than=timedelta(0))


def test_only_one_computes_at_a_time(database: LiveDatabase, make_graph: MakeGraph):
    make_graph("acme", "ab")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        assert claim_ranks(connection, "acme")
        assert refresh_ranks(database.engine, "acme", force=True) is None
    assert refresh_ranks(database.engine, "acme") is not None


def test_a_node_that_is_deleted_meanwhile_is_left_out(
    database: LiveDatabase, make_graph: MakeGraph
):
    nodes = make_graph("acme", "ab bc")
    ranks = dict.fromkeys(nodes.values(), 1 / 3)

    def store() -> None:
        with tenant_transaction(database.engine, ["acme"]) as connection:
            store_ranks(connection, "acme", ranks=ranks, links=2, seen_marks=[])

    with tenant_transaction(database.engine, ["acme"]) as connection:
        delete_nodes(connection, "acme", external_ids=["c"])
        storing = Thread(target=store)
        storing.start()
        storing.join(0.3)
        assert storing.is_alive()
    storing.join(10)
    assert set(stored_ranks(database, "acme")) == {"a", "b"}


def test_a_deleted_tenant_leaves_no_marks_and_no_state(
    database: LiveDatabase, make_graph: MakeGraph
):
    make_graph("acme", "ab")
    refresh_ranks(database.engine, "acme")
    link(database, "acme", "ba")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("select delete_tenant('acme')")
        for table in ("link_marks", "rank_states"):
            count = connection.exec_driver_sql(f"select count(*) from contextforge.{table}")
            assert count.scalar_one() == 0, table


# --- reading -----------------------------------------------------------------------------------


def test_ranks_are_divided_by_the_largest_of_their_own_tenant(
    database: LiveDatabase, make_graph: MakeGraph
):
    acme = make_graph("acme", "ab db", nodes="c")
    globex = make_graph("globex", "ba cb")
    for tenant in ("acme", "globex"):
        refresh_ranks(database.engine, tenant)
    shares = read(database, ["acme", "globex"], [*acme.values(), *globex.values()]).shares
    assert shares[acme["b"]] == shares[globex["a"]] == 1
    assert 0 < shares[acme["a"]] < 1
    assert shares[acme["c"]] == 0


def test_a_section_has_the_rank_of_its_article(
    database: LiveDatabase, make_graph: MakeGraph, upsert: Upsert, make_node: MakeNode
):
    nodes = make_graph("acme", "ab ba bc")
    [section] = upsert("acme", [make_node("s", "part", node_type="section", parent="b")])
    refresh_ranks(database.engine, "acme")
    shares = read(database, ["acme"], [section.node_id, nodes["b"]]).shares
    assert shares[section.node_id] == shares[nodes["b"]] > 0


def test_a_sparse_graph_is_left_out_and_says_so(database: LiveDatabase, make_graph: MakeGraph):
    sparse = make_graph("acme", "ab", nodes="cde")
    enough = make_graph("globex", "ab cd", nodes="")
    for tenant in ("acme", "globex"):
        refresh_ranks(database.engine, tenant)
    ranks = read(database, ["acme", "globex"], [*sparse.values(), *enough.values()])
    assert (ranks.sparse, ranks.unranked) == (("acme",), ())
    assert set(ranks.shares) == set(enough.values())


def test_half_a_link_an_article_is_enough(database: LiveDatabase, make_graph: MakeGraph):
    nodes = make_graph("acme", "ab cd", nodes="")
    refresh_ranks(database.engine, "acme")
    assert set(read(database, ["acme"], list(nodes.values())).shares) == set(nodes.values())


def test_ranks_that_were_never_computed_are_said_to_be_unranked(
    database: LiveDatabase, make_graph: MakeGraph
):
    nodes = make_graph("acme", "ab")
    ranks = read(database, ["acme"], list(nodes.values()))
    assert (ranks.shares, ranks.unranked) == ({}, ("acme",))


# --- for callers that may not write ------------------------------------------------------------


def test_a_reader_computes_in_memory_what_a_writer_would_store(
    database: LiveDatabase, make_graph: MakeGraph, upsert: Upsert, make_node: MakeNode
):
    nodes = make_graph("acme", "ab cb", nodes="d")
    [section] = upsert("acme", [make_node("s", "part", node_type="section", parent="b")])
    wanted = [*nodes.values(), section.node_id]
    with tenant_transaction(database.engine, ["acme"]) as connection:
        connection.exec_driver_sql("set transaction read only")
        held = RankMemory().read_ranks(connection, ["acme"], wanted)
        with pytest.raises(InternalError), connection.begin_nested():
            update_ranks(connection, "acme")
    assert stored_ranks(database, "acme") == {}
    refresh_ranks(database.engine, "acme")
    stored = read(database, ["acme"], wanted)
    assert held.shares == pytest.approx(stored.shares)
    assert replace(held, shares={}) == replace(stored, shares={})


def test_a_reader_uses_stored_ranks_and_keeps_its_own_for_the_rest(
    database: LiveDatabase, make_graph: MakeGraph
):
    acme, globex = make_graph("acme", "ab"), make_graph("globex", "ab")
    refresh_ranks(database.engine, "acme")
    memory = RankMemory()
    both, wanted = ["acme", "globex"], [*acme.values(), *globex.values()]

    def read_both() -> NodeRanks:
        with tenant_transaction(database.engine, both) as connection:
            return memory.read_ranks(connection, both, wanted)

    first = read_both()
    assert set(first.shares) == set(wanted)
    link(database, "globex", "ba")
    assert read_both() == first


def test_a_reader_leaves_a_sparse_graph_out_too(database: LiveDatabase, make_graph: MakeGraph):
    nodes = make_graph("acme", "ab", nodes="cde")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        ranks = RankMemory().read_ranks(connection, ["acme"], list(nodes.values()))
    assert (ranks.shares, ranks.sparse) == ({}, ("acme",))
