"""Segments: writes append them, merges fold them, and searches never notice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from service.db.engine import owner_transaction
from service.db.maintenance import merge_segments
from service.db.nodes import delete_nodes, upsert_nodes
from service.db.search import bm25_search_nodes, hybrid_search_nodes
from service.types import Hit, ScoredNode
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent
from tests.sql.search_corpus import TEXTS, at_cosine, searching, vector

QUESTIONS = (
    "boat in the harbour",
    "bread flour",
    "warm winter sea engine",
    "letters of the sailor",
)
Results = list[list[ScoredNode] | list[Hit]]


@pytest.fixture
def acme(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> str:
    """A tenant whose nodes were written one by one."""
    tenant = make_tenant()
    for i, text in enumerate(TEXTS[:20]):
        # Seven words at most: segments of eight postings or more are of another size.
        few = " ".join(text.split()[:7])
        upsert(tenant, [make_node(f"n{i}", few)], embeddings=[at_cosine(i / 20)])
    return tenant


def count_segments(database: LiveDatabase, tenant: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(
            connection.exec_driver_sql(
                "select count(*) from contextforge.segments where tenant_id = %s", (tenant,)
            ).scalar_one()
        )


def count_dead_postings(database: LiveDatabase, tenant: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(
            connection.exec_driver_sql(
                "select count(*) from contextforge.postings as p, unnest(p.packed) as x"
                " where p.tenant_id = %s and (x >> 30) not in"
                " (select s.doc_id from contextforge.search_nodes as s)",
                (tenant,),
            ).scalar_one()
        )


def search(database: LiveDatabase, tenant: str) -> Results:
    found: Results = []
    with searching(database, tenant) as connection:
        for question in QUESTIONS:
            found.append(bm25_search_nodes(connection, [tenant], query_text=question))
            found.append(
                hybrid_search_nodes(
                    connection, [tenant], query_text=question, query_embedding=vector(1)
                )
            )
    return found


def merge(database: LiveDatabase, tenant: str, *, everything: bool = False) -> int:
    with searching(database, tenant) as connection:
        return merge_segments(connection, tenant, everything=everything)


def test_each_write_appends_one_segment_and_a_merge_folds_alike_ones(
    database: LiveDatabase, acme: str
) -> None:
    before = search(database, acme)
    assert count_segments(database, acme) == 20

    folded = merge(database, acme)

    assert folded == 20
    assert count_segments(database, acme) == 1
    assert merge(database, acme) == 0
    assert search(database, acme) == before
    assert_consistent(database, acme)


def test_seven_alike_segments_are_left_alone_and_the_eighth_folds_them(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    acme = make_tenant()
    upsert(acme, [make_node(f"big{i}", text) for i, text in enumerate(TEXTS)])
    for i in range(7):
        upsert(acme, [make_node(f"n{i}", "boat harbour")])
    assert merge(database, acme) == 0

    upsert(acme, [make_node("n7", "boat harbour")])

    assert merge(database, acme) == 8
    assert count_segments(database, acme) == 2


def test_dead_postings_never_surface_and_a_full_merge_drops_them(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    upsert(acme, [make_node(f"n{i}", "Nothing of before.") for i in range(5)])
    with searching(database, acme) as connection:
        gone = delete_nodes(connection, acme, external_ids=["n5", "n6", "n7"])
        live = set(connection.exec_driver_sql("select node_id from knowledge_nodes").scalars())
    before = search(database, acme)
    assert count_dead_postings(database, acme) > 0

    for everything in (False, True):
        assert merge(database, acme, everything=everything) > 0
        assert search(database, acme) == before
        assert_consistent(database, acme)

    assert count_segments(database, acme) == 1
    assert count_dead_postings(database, acme) == 0
    found = {node.node_id for nodes in before for node in nodes}
    assert found <= live
    assert not found & {node.node_id for node in gone}
    with searching(database, acme) as connection:
        nothing = bm25_search_nodes(connection, [acme], query_text="baker's rolls")
        postings, live_postings, empty = connection.exec_driver_sql(
            "select max(s.postings), max(s.live_postings),"
            " count(p.*) filter (where p.packed = '{}')"
            " from contextforge.segments as s join contextforge.postings as p using (segment_id)"
        ).one()
    assert nothing == []
    assert postings == live_postings
    assert empty == 0


def test_a_tenant_without_nodes_merges_to_nothing(
    database: LiveDatabase, acme: str, make_tenant: MakeTenant
) -> None:
    assert merge(database, make_tenant("empty"), everything=True) == 0
    with searching(database, acme) as connection:
        delete_nodes(connection, acme, external_ids=[f"n{i}" for i in range(20)])

    assert merge(database, acme, everything=True) == 21

    assert_consistent(database, acme)
    assert all(nodes == [] for nodes in search(database, acme))


def test_readers_and_writers_go_on_while_a_merge_is_open(
    database: LiveDatabase, acme: str, make_node: MakeNode
) -> None:
    before = search(database, acme)
    with searching(database, acme) as merging:
        assert merge_segments(merging, acme) == 20
        with searching(database, acme) as reader:
            reader.exec_driver_sql("set local lock_timeout = '200ms'")
            found = bm25_search_nodes(reader, [acme], query_text=QUESTIONS[0])
        with searching(database, acme) as writer:
            writer.exec_driver_sql("set local lock_timeout = '200ms'")
            upsert_nodes(writer, acme, nodes=[make_node("n0", "Quite another text.")])
            delete_nodes(writer, acme, external_ids=["n1"])

    assert found == before[0]
    assert_consistent(database, acme)
    merge(database, acme, everything=True)
    assert_consistent(database, acme)
    assert count_dead_postings(database, acme) == 0


def test_the_second_of_two_merges_has_nothing_to_do(database: LiveDatabase, acme: str) -> None:
    with searching(database, acme) as first, searching(database, acme) as second:
        assert merge_segments(first, acme) == 20
        assert merge_segments(second, acme, everything=True) == 0

    assert count_segments(database, acme) == 1
    assert_consistent(database, acme)


def test_merges_beside_many_writes_keep_the_statistics(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    stop = Event()

    def write(worker: int) -> None:
        for i in range(25):
            name = f"n{(i * 3 + worker) % 20}"
            upsert(acme, [make_node(name, TEXTS[(i + worker) % len(TEXTS)])])
            if i % 5 == worker:
                with searching(database, acme) as connection:
                    delete_nodes(connection, acme, external_ids=[name])

    def keep_merging() -> int:
        folded = 0
        while not stop.is_set():
            folded += merge(database, acme, everything=folded % 2 == 1)
        return folded

    with ThreadPoolExecutor(3) as pool:
        merger = pool.submit(keep_merging)
        writers = [pool.submit(write, worker) for worker in (0, 1)]
        try:
            for writer in writers:
                writer.result(timeout=60)
        finally:
            stop.set()
        assert merger.result(timeout=10) > 0

    assert_consistent(database, acme)
    before = search(database, acme)
    merge(database, acme, everything=True)
    assert search(database, acme) == before
    assert_consistent(database, acme)
