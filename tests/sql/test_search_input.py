"""What cannot be searched with is refused with a hint; what people type never is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

import numpy as np
import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.db.search import (
    bm25_search_nodes,
    explain_hybrid_search,
    hybrid_search_nodes,
    similar_nodes,
    vector_search_nodes,
)
from service.errors import InvalidInput
from service.types import Json
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import TEXTS, random_vectors, searching, vector

NAN = float("nan")
EAST = vector(1)
# Arguments that are wrong, and what the message says about them.
WRONG: list[tuple[dict[str, object], str]] = [
    ({"top_k": 0}, "top_k is 0"),
    ({"top_k": -1}, "top_k is -1"),
    ({"top_k": 1001}, "top_k is 1001"),
    ({"top_k": None}, "top_k is null"),
    ({"query_text": None, "query_embedding": None}, "neither query_text nor query_embedding"),
    ({"query_text": "", "query_embedding": None}, "neither query_text nor query_embedding"),
    ({"bm25_weight": -0.1}, "negative"),
    ({"vector_weight": -1}, "negative"),
    ({"bm25_weight": NAN}, "not a number"),
    ({"vector_weight": float("inf")}, "not a number"),
    ({"vector_weight": None}, "null"),
    ({"bm25_weight": 5e-324}, "next to nothing"),
    ({"bm25_weight": 0, "vector_weight": 0}, "both weights are zero"),
    ({"query_text": None, "vector_weight": 0}, "weight zero"),
    ({"query_embedding": None, "bm25_weight": 0}, "weight zero"),
    ({"query_embedding": vector(1, dim=5)}, '5 dimensions where tenant "acme" has 8'),
    ({"query_embedding": vector(1, dim=9)}, '9 dimensions where tenant "acme" has 8'),
    ({"query_embedding": vector(0)}, "all zeros"),
    ({"fusion": "borda"}, 'fusion "borda" is unknown'),
    ({"fusion": None}, "fusion"),
    ({"rrf_k": 0}, "rrf_k"),
    ({"rrf_k": None}, "rrf_k"),
    ({"min_relevance": 1.5}, "min_relevance"),
    ({"min_relevance": -0.5}, "min_relevance"),
    ({"min_relevance": NAN}, "min_relevance"),
]
WRONG_FILTERS: dict[str, Json] = {
    '"colour" is unknown': {"colour": "red"},
    '"lang"': {"lang": 3},
    '"space_id"': {"space_id": ["a"]},
    '"doc"': {"doc": {"a": 1}},
    '"acl"': {"acl": "staff"},
    '"metadata"': {"metadata": ["a"]},
    "no json object": ["lang"],
}
HARMLESS = {
    "stop words": "is it the same of them",
    "emoji": "🚤 ⚓️ 👩‍🚀🏽",
    "tsquery": "& | ! ( : * ' <-> boat:* !harbour (tide | ",
    "sql": "'; drop table knowledge_nodes; -- \\ $1 %s %(x)s {} E'\\x'",
    "quotes": "\"boat\" 'harbour' `tide`",
    "markup": "<b>boat</b> <script>alert(1)</script> &amp; http://example.org/?a=b#c a@b.cd",
    "white space": " \t\n\r ",
    "one long word": "boat" * 20_000,
    "controls": "boat \x01\x02\x7f\u200b\u202e harbour \ufeff",
    "combining": "e\u0301" * 500 + " Ǆ ß İ",
    "numbers": "-1e400 0x1F 1/2 ١٢٣ 99999999999999999999999",
    "a megabyte": " ".join(f"word{i} boat" for i in range(70_000)),
    "a megabyte of identifiers": "customerEmailAddress HTTPServerPool " * 28_000,
    "a megabyte without a space": "aB" * 500_000,
    "wide letters": "".join(chr(0x20000 + i % 40_000) + " " for i in range(120_000)),
}


@pytest.fixture
def acme(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> str:
    tenant = make_tenant()
    upsert(
        tenant,
        [make_node(f"n{i}", text, title="t") for i, text in enumerate(TEXTS)],
        embeddings=list(random_vectors(len(TEXTS))),
    )
    return tenant


def assert_refused(database: LiveDatabase, call: Callable[[Connection], object], says: str) -> None:
    with pytest.raises(InvalidInput) as raised, searching(database, "acme") as connection:
        call(connection)
    assert says in str(raised.value)
    assert raised.value.hint
    assert getattr(raised.value.__cause__.orig, "sqlstate", None) == "22023"  # type: ignore[union-attr]


def test_arguments_that_cannot_be_searched_with_are_refused_with_a_hint(
    database: LiveDatabase, acme: str
) -> None:
    for search in (hybrid_search_nodes, explain_hybrid_search):
        for wrong, says in WRONG:
            given = {"query_text": "boat", "query_embedding": EAST, **wrong}

            def call(
                connection: Connection,
                search: Callable[..., object] = search,
                given: Mapping[str, object] = given,
            ) -> object:
                return search(connection, [acme], **given)

            assert_refused(database, call, says)


def test_every_search_refuses_a_wrong_count_tenant_list_or_filter(
    database: LiveDatabase, acme: str
) -> None:
    with searching(database, acme) as connection:
        node_id = connection.exec_driver_sql(
            "select min(node_id) from knowledge_nodes"
        ).scalar_one()
    calls = {
        "hybrid_search_nodes('boat', null, {tenants}, null, {top_k}, filters => {filters})",
        "explain_hybrid_search('boat', null, {tenants}, null, {top_k}, filters => {filters})",
        "bm25_search_nodes('boat', {tenants}, null, {top_k}, filters => {filters})",
        "vector_search_nodes('[1,0,0,0,0,0,0,1]', {tenants}, null, {top_k}, filters => {filters})",
        f"similar_nodes({node_id}, {{tenants}}, null, {{top_k}}, filters => {{filters}})",
    }

    def refuse(call: str, says: str, *, filters: Json = None, **wrong: str) -> None:
        values = {"tenants": f"'{{{acme}}}'", "top_k": "20", **wrong}
        statement = f"select * from {call.format(filters='%s', **values)}"
        given = None if filters is None else Jsonb(filters)
        assert_refused(database, lambda c: c.exec_driver_sql(statement, (given,)), says)

    for call in calls:
        for top_k in ("0", "-1", "1001", "null"):
            refuse(call, f"top_k is {top_k}", top_k=top_k)
        for tenants in ("'{}'", "null", "'{acme,null}'"):
            refuse(call, "tenant_ids is empty", tenants=tenants)
        for says, filters in WRONG_FILTERS.items():
            refuse(call, says, filters=filters)


def test_a_search_by_words_or_by_a_vector_needs_them(database: LiveDatabase, acme: str) -> None:
    assert_refused(
        database, lambda c: bm25_search_nodes(c, [acme], query_text=""), "neither query_text"
    )
    assert_refused(
        database,
        lambda c: vector_search_nodes(c, [acme], query_embedding=vector(1, dim=4)),
        '4 dimensions where tenant "acme" has 8',
    )


def test_a_vector_or_text_that_no_column_can_hold_is_invalid_input(
    database: LiveDatabase, acme: str
) -> None:
    for broken in (np.full(8, NAN, np.float32), np.full(8, np.inf, np.float32)):
        with pytest.raises(InvalidInput), searching(database, acme) as connection:
            vector_search_nodes(connection, [acme], query_embedding=broken)
    for text in ("boat\x00harbour", "boat \ud800"):
        with pytest.raises(InvalidInput), searching(database, acme) as connection:
            hybrid_search_nodes(connection, [acme], query_text=text)


@pytest.mark.filterwarnings("ignore:word is too long")
def test_nothing_anyone_types_is_an_error(database: LiveDatabase, acme: str) -> None:
    for name, text in HARMLESS.items():
        with searching(database, acme) as connection:
            started = monotonic()
            keyword = bm25_search_nodes(connection, [acme], query_text=text)
            both = hybrid_search_nodes(connection, [acme], query_text=text, query_embedding=EAST)
            explain_hybrid_search(connection, [acme], query_text=text)
        assert len(both) == 20
        assert len(keyword) <= 20
        assert monotonic() - started < 10, name
        if name in ("stop words", "emoji", "white space"):
            assert keyword == []
        if name in ("tsquery", "quotes", "a megabyte", "controls"):
            assert keyword != []


def test_a_question_of_ten_thousand_words_is_answered_in_time(
    database: LiveDatabase, acme: str, make_node: MakeNode, upsert: Upsert
) -> None:
    words = [f"word{i}" for i in range(10_000)]
    upsert(acme, [make_node(f"w{i}", " ".join(words[i : i + 50])) for i in range(0, 10_000, 25)])

    with searching(database, acme) as connection:
        started = monotonic()
        found = bm25_search_nodes(connection, [acme], query_text=" ".join(words), top_k=1000)
        took = monotonic() - started

    assert len(found) == 400
    assert took < 4


def test_extreme_but_valid_arguments_are_answered(database: LiveDatabase, acme: str) -> None:
    largest = np.full(8, np.finfo(np.float32).max, np.float32)
    smallest = np.full(8, 1e-40, np.float32)
    with searching(database, acme) as connection:
        node_id = connection.exec_driver_sql(
            "select min(node_id) from knowledge_nodes"
        ).scalar_one()
        assert len(similar_nodes(connection, [acme], node_id=node_id, top_k=1000)) == 59
        for query in (largest, smallest):
            found = vector_search_nodes(connection, [acme], query_embedding=query, top_k=1000)
            assert len(found) == 60
        for options in ({"rrf_k": 2**31 - 1}, {"bm25_weight": 1e6}, {"bm25_weight": 1e-300}):
            hits = hybrid_search_nodes(
                connection,
                [acme],
                query_text="boat",
                query_embedding=EAST,
                **options,
            )
            assert len(hits) == 20
            assert all(0 <= hit.combined_score <= 1 for hit in hits)
        again = hybrid_search_nodes(connection, [acme, acme], query_text="boat")
        assert again == hybrid_search_nodes(connection, [acme], query_text="boat")
