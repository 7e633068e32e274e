"""Common terms that are skipped (MaxScore) change nothing but the time."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from service.db.engine import plain_transaction, tenant_transaction
from service.db.maintenance import merge_segments
from service.db.nodes import delete_nodes
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

NEVER = 2**31 - 1
SKIPS = (
    "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions"
    " where funcname = 'documents_above'"
)
QUERIES = (
    "comet garden",
    "comet meadow garden stone",
    "lantern comet garden stone river",
    "lantern meadow",
    "garden stone river",
    "nothing comet river",
)
WORDS = ("garden", "stone", "river", "comet", "meadow", "lantern", "filler")
COUNTS = (30, 20, 20, 2, 3, 1, 24)


@pytest.fixture
def corpus(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> str:
    """800 nodes: three words in nearly all of them, three in few, lengths and ties of all kinds."""
    tenant = make_tenant("acme")
    nodes = []
    for i in range(800):
        words = ["garden"] * (1 + i % 3) + ["stone"] * (i % 5 > 0) + ["river"] * (i % 7 > 1)
        words += ["comet"] * (2 if i % 31 == 0 else 0) + ["meadow"] * (i % 23 == 0)
        words += ["lantern"] * (i % 97 == 0) + ["filler"] * (i % 11)
        nodes.append(make_node(f"n{i}", " ".join(words)))
    upsert(tenant, nodes)
    return tenant


def find(
    database: LiveDatabase,
    tenant: str,
    query: str,
    *,
    prune_from: int,
    top_k: int,
    node_types: list[str] | None = None,
) -> tuple[list[tuple[int, float]], int]:
    """The hits, and how often terms were skipped on the way to them."""
    with plain_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.installation set prune_from = %s", (prune_from,)
        )
        connection.exec_driver_sql("set local track_functions = 'all'")
        before = connection.exec_driver_sql(SKIPS).scalar_one()
        hits = connection.exec_driver_sql(
            "select node_id, bm25_score from bm25_search_nodes(%s, %s, %s, %s)",
            (query, [tenant], node_types, top_k),
        ).all()
        skipped = connection.exec_driver_sql(SKIPS).scalar_one() - before
        connection.rollback()
    return [(row.node_id, row.bm25_score) for row in hits], int(skipped)


@pytest.mark.parametrize("top_k", [1, 3, 5, 20])
def test_hits_and_scores_are_the_same_with_and_without_skipping(
    database: LiveDatabase, corpus: str, top_k: int
) -> None:
    times_skipped = 0
    for query in QUERIES:
        expected, never = find(database, corpus, query, prune_from=NEVER, top_k=top_k)
        found, skipped = find(database, corpus, query, prune_from=0, top_k=top_k)
        assert found == expected, query
        assert len(found) == top_k
        assert never == 0
        times_skipped += skipped
    assert times_skipped > 0


def test_a_small_search_does_not_try_to_skip(database: LiveDatabase, corpus: str) -> None:
    with plain_transaction(database.admin) as connection:
        usual = connection.exec_driver_sql(
            "select prune_from from contextforge.installation"
        ).scalar_one()

    assert find(database, corpus, QUERIES[2], prune_from=usual, top_k=5)[1] == 0


@pytest.mark.parametrize("merged", [False, True])
def test_skipping_sees_every_segment_and_no_dead_or_filtered_node(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_node: MakeNode,
    upsert: Upsert,
    merged: bool,
) -> None:
    tenant, random = make_tenant("acme"), Random(5)

    def write(places: range) -> None:
        upsert(
            tenant,
            [
                make_node(
                    f"n{place}",
                    " ".join(random.choices(WORDS, COUNTS, k=random.randint(2, 25))),
                    node_type=random.choice(["article", "field"]),
                )
                for place in places
            ],
        )

    for start in range(0, 600, 100):
        write(range(start, start + 100))
    write(range(0, 600, 4))
    with tenant_transaction(database.engine, [tenant]) as connection:
        delete_nodes(connection, tenant, external_ids=[f"n{i}" for i in range(1, 600, 6)])
        if merged:
            merge_segments(connection, tenant, everything=True)

    times_skipped = 0
    for query, top_k, types in product(QUERIES, (1, 5, 20), (None, ["field"])):
        expected, _ = find(database, tenant, query, prune_from=NEVER, top_k=top_k, node_types=types)
        found, skipped = find(database, tenant, query, prune_from=0, top_k=top_k, node_types=types)
        assert found == expected, (query, top_k, types)
        times_skipped += skipped
    assert times_skipped > 10
