"""BM25 in the database against a plain one in Python, on the same lexemes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.db.engine import owner_transaction
from service.db.maintenance import merge_segments
from service.db.nodes import delete_nodes
from service.db.search import bm25_search_nodes
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import TEXTS, searching

SCIFACT = Path(__file__).parents[3] / "shared" / "data" / "scifact"
TENANTS = ("acme", "globex", "initech")
K1, B = 1.2, 0.75

words = sorted({word.strip(".,:'").lower() for text in TEXTS for word in text.split()})
queries = st.lists(st.sampled_from([*words, "zeppelin", "Quasar"]), min_size=1, max_size=12).map(
    " ".join
)


class Reference:
    """Textbook BM25 over the nodes of a few tenants, as they are stored now."""

    def __init__(self, database: LiveDatabase, tenants: Sequence[str]) -> None:
        self._database = database
        self._nodes: dict[int, Counter[str]] = {}
        with owner_transaction(database.admin) as connection:
            for node_id, lexeme, positions in connection.exec_driver_sql(
                "select n.node_id, u.lexeme, u.positions from knowledge_nodes as n"
                " left join lateral unnest(n.searchable_text) as u on true"
                " where n.tenant_id = any(%s) and n.searchable_text is not null",
                (list(tenants),),
            ):
                terms = self._nodes.setdefault(node_id, Counter())
                if lexeme is not None:
                    terms[lexeme] = len(positions)
        self._lengths = {node_id: terms.total() for node_id, terms in self._nodes.items()}
        self._average = sum(self._lengths.values()) / len(self._nodes)
        self._frequencies = Counter(lexeme for terms in self._nodes.values() for lexeme in terms)

    def score(self, query: str) -> dict[int, float]:
        """The score of every node that holds a word of the query."""
        totals: dict[int, float] = {}
        for lexeme in self._lexemes(query):
            df = self._frequencies[lexeme]
            idf = log(1 + (len(self._nodes) - df + 0.5) / (df + 0.5))
            for node_id, terms in self._nodes.items():
                tf = terms[lexeme]
                if tf:
                    share = 1 - B + B * self._lengths[node_id] / self._average
                    totals[node_id] = totals.get(node_id, 0.0) + (
                        idf * tf * (K1 + 1) / (tf + K1 * share)
                    )
        return totals

    def _lexemes(self, query: str) -> list[str]:
        with owner_transaction(self._database.admin) as connection:
            return list(
                connection.exec_driver_sql(
                    "select tsvector_to_array(contextforge.index_text('english', %s))", (query,)
                ).scalar_one()
            )


def assert_equals_reference(
    database: LiveDatabase, tenants: Sequence[str], asked: Sequence[str]
) -> None:
    reference = Reference(database, tenants)
    for query in asked:
        expected = reference.score(query)
        with searching(database, *tenants) as connection:
            found = bm25_search_nodes(connection, tenants, query_text=query, top_k=1000)
        best = sorted(expected.values(), reverse=True)[:1000]
        assert [node.score for node in found] == pytest.approx(best, rel=1e-6), query
        for node in found:
            assert node.score == pytest.approx(expected[node.node_id], rel=1e-6), query


def read_lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (SCIFACT / name).read_text().splitlines()]


@pytest.fixture
def tenants(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> tuple[str, ...]:
    """Three tenants of 32, 18 and 10 nodes, written in batches of two."""
    shares = dict(zip(TENANTS, (range(32), range(32, 50), range(50, 60)), strict=True))
    for tenant, share in shares.items():
        make_tenant(tenant)
        for first in share[::2]:
            upsert(
                tenant,
                [
                    make_node(f"n{i}", TEXTS[i], title=TEXTS[i][:9] * (i % 3))
                    for i in (first, first + 1)
                ],
            )
    return TENANTS


@given(query=queries, asked=st.sets(st.sampled_from(TENANTS), min_size=1))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_query_over_any_tenants_scores_as_the_reference(
    database: LiveDatabase, tenants: tuple[str, ...], query: str, asked: set[str]
) -> None:
    assert_equals_reference(database, sorted(asked), [query])


def test_scores_equal_the_reference_after_updates_deletes_and_merges(
    database: LiveDatabase, tenants: tuple[str, ...], make_node: MakeNode, upsert: Upsert
) -> None:
    asked = [
        "boat harbour tide",
        "bread flour water",
        "warm winter engine sea",
        "letters",
        "apples",
    ]
    first, second, _ = tenants

    def check() -> None:
        assert_equals_reference(database, [first], asked)
        assert_equals_reference(database, tenants, asked)

    check()
    upsert(first, [make_node(f"n{i}", TEXTS[-i] + " boat tide") for i in range(0, 32, 3)])
    upsert(second, [make_node(f"n{i}", "Nothing but sea and engine.") for i in range(32, 40)])
    check()
    with searching(database, first) as connection:
        delete_nodes(connection, first, external_ids=[f"n{i}" for i in range(1, 32, 4)])
    check()
    with searching(database, first) as connection:
        assert merge_segments(connection, first) >= 8
    check()
    for tenant in tenants:
        with searching(database, tenant) as connection:
            assert merge_segments(connection, tenant, everything=True) >= 1
    check()


@pytest.mark.slow
@pytest.mark.skipif(not SCIFACT.exists(), reason="../shared/data/scifact is not here")
def test_scores_equal_the_reference_on_scifact(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    documents = read_lines("corpus.jsonl")
    asked = [query["text"] for query in read_lines("queries.jsonl")]
    half = len(documents) // 2
    for tenant, part in (("acme", documents[:half]), ("globex", documents[half:])):
        make_tenant(tenant)
        for start in range(0, len(part), 300):
            upsert(
                tenant,
                [
                    make_node(d["_id"], d["text"], title=d["title"])
                    for d in part[start : start + 300]
                ],
            )

    assert_equals_reference(database, ["acme"], asked[:20])
    assert_equals_reference(database, ["acme", "globex"], asked[20:50])
    with searching(database, "acme") as connection:
        delete_nodes(connection, "acme", external_ids=[d["_id"] for d in documents[:half:7]])
    upsert("acme", [make_node(d["_id"], d["text"][::-1]) for d in documents[1:half:9]])
    assert_equals_reference(database, ["acme"], asked[:10])
    with searching(database, "acme") as connection:
        assert merge_segments(connection, "acme", everything=True) > 1
    assert_equals_reference(database, ["acme", "globex"], asked[:10])
