"""The same results, in order and score, whatever plan the planner takes."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

import numpy as np
import pytest
from sqlalchemy import Connection

from service.types import NodeDraft
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import TEXTS, random_vectors, searching

NODES = 3000
PLANS = {
    "defaults": {},
    "seqscan": {
        "enable_indexscan": "off",
        "enable_bitmapscan": "off",
        "enable_indexonlyscan": "off",
    },
    "indexscan": {"enable_seqscan": "off", "enable_bitmapscan": "off"},
    "bitmapscan": {"enable_seqscan": "off", "enable_indexscan": "off"},
    "no bitmapscan": {"enable_bitmapscan": "off"},
    "no hashagg": {"enable_hashagg": "off"},
    "no hashagg, sort on": {"enable_hashagg": "off", "enable_sort": "on"},
    "no sort": {"enable_sort": "off"},
    "nested loops": {"enable_hashjoin": "off", "enable_mergejoin": "off"},
    "merge joins": {"enable_hashjoin": "off", "enable_nestloop": "off"},
    "hash joins": {"enable_mergejoin": "off", "enable_nestloop": "off"},
    "parallel": {
        "debug_parallel_query": "regress",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "min_parallel_index_scan_size": "0",
        "max_parallel_workers_per_gather": "4",
    },
    "parallel inside": {
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "min_parallel_index_scan_size": "0",
        "max_parallel_workers_per_gather": "4",
    },
    "not parallel": {"max_parallel_workers_per_gather": "0"},
    "generic": {"plan_cache_mode": "force_generic_plan"},
    "little memory": {"work_mem": "64kB", "hash_mem_multiplier": "1"},
    "jit": {"jit": "on", "jit_above_cost": "0"},
}
HYBRID = (
    "select node_id, bm25_score, vector_score, combined_score from hybrid_search_nodes("
    "$1, $2::vector, $3, null, $4, fusion => '{fusion}', min_relevance => {floor})"
)
SEARCHES = {
    "rrf": HYBRID.format(fusion="rrf", floor="null"),
    "rrf over a floor": HYBRID.format(fusion="rrf", floor="0.1"),
    "convex": HYBRID.format(fusion="convex", floor="null"),
    "bm25": "select node_id, bm25_score from bm25_search_nodes($1, $3, null, $4)",
    "vector": "select node_id, vector_score from vector_search_nodes($2::vector, $3, null, $4)",
}
Row = tuple[object, ...]


@pytest.fixture
def tenants(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> tuple[str, ...]:
    """Thousands of nodes with few distinct texts and vectors: ties run past every depth."""
    vectors = random_vectors(25)
    picks = np.random.default_rng(3).integers(0, [12, 25], size=(NODES, 2))
    drafts: list[NodeDraft] = [
        make_node(f"n{i}", TEXTS[text] + " harbour") for i, (text, _) in enumerate(picks)
    ]
    embeddings = [vectors[v] if i % 10 else None for i, (_, v) in enumerate(picks)]
    cut = NODES // 4
    for tenant, part in (("acme", slice(cut, None)), ("globex", slice(0, cut))):
        make_tenant(tenant)
        upsert(tenant, drafts[part], embeddings=embeddings[part])
        upsert(tenant, drafts[part][:40], embeddings=embeddings[part][1:41])
    return "acme", "globex"


def run(
    connection: Connection,
    search: str,
    tenants: Sequence[str],
    *,
    top_k: int = 20,
    times: int = 1,
) -> list[list[Row]]:
    """The results of a prepared search, executed so many times."""
    query = ",".join(map(str, random_vectors(1, seed=11)[0]))
    names = ",".join(tenants)
    connection.exec_driver_sql(f"prepare search (text, vector, text[], int) as {search}")
    results = [
        [
            tuple(row)
            for row in connection.exec_driver_sql(
                f"execute search ('bread boat harbour', '[{query}]', '{{{names}}}', {top_k})"
            )
        ]
        for _ in range(times)
    ]
    connection.exec_driver_sql("deallocate search")
    return results


@pytest.mark.parametrize("search", SEARCHES)
def test_results_are_the_same_under_any_plan(
    database: LiveDatabase, tenants: tuple[str, ...], search: str
) -> None:
    results: dict[str, list[list[Row]]] = {}
    for plan, switches in PLANS.items():
        with searching(database, *tenants) as connection:
            for name, value in switches.items():
                connection.exec_driver_sql(f"set local {name} = '{value}'")
            results[plan] = [
                *run(connection, SEARCHES[search], tenants[:1]),
                *run(connection, SEARCHES[search], tenants, top_k=33),
            ]

    expected = results["defaults"]
    assert [len(rows) for rows in expected] == [20, 33]
    for rows in expected:
        has_ties = len({row[-1] for row in rows}) < len(rows)
        assert has_ties or search.startswith("rrf")
        assert rows == sorted(rows, key=lambda row: (-float(str(row[-1])), row[0]))
    assert {plan for plan in PLANS if results[plan] != expected} == set()


def test_a_prepared_search_gives_the_same_each_time_and_any_shorter_answer_is_its_beginning(
    database: LiveDatabase, tenants: tuple[str, ...]
) -> None:
    with searching(database, *tenants) as connection:
        for search in SEARCHES.values():
            longest, *again = run(connection, search, tenants[:1], times=7)
            assert again == [longest] * 6
            for top_k in (1, 2, 7, 13):
                assert run(connection, search, tenants[:1], top_k=top_k) == [longest[:top_k]]


@pytest.mark.slow
def test_a_word_that_every_node_holds_costs_no_square_before_the_first_analyze(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    acme = make_tenant()
    upsert(acme, [make_node(f"n{i}", "harbour") for i in range(20_000)])

    with searching(database, acme) as connection:
        started = monotonic()
        (found,) = run(connection, SEARCHES["bm25"], [acme])

    # Nested loops over postings and nodes took 7 s, a hash join takes 0.4 s.
    assert monotonic() - started < 3
    assert len(found) == 20
