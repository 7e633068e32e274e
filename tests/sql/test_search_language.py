"""Words as people write them: questions, inflections, identifiers."""

from __future__ import annotations

import pytest

from service.db.search import bm25_search_nodes, explain_hybrid_search
from service.types import SearchFilters
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import searching


class Library:
    """Nodes of one tenant, found by words, known by their external ids."""

    def __init__(self, database: LiveDatabase, tenant: str, upsert: Upsert) -> None:
        self._database, self._tenant, self._upsert = database, tenant, upsert
        self._make: dict[int, str] = {}

    def add(self, make_node: MakeNode, lang: str | None = None, **texts: str) -> None:
        made = self._upsert(
            self._tenant, [make_node(name, text, lang=lang) for name, text in texts.items()]
        )
        self._make |= {n.node_id: n.external_id for n in made}

    def find(self, query: str, lang: str | None = None) -> list[str]:
        """External ids, best first."""
        filters = SearchFilters(lang=lang) if lang else None
        with searching(self._database, self._tenant) as connection:
            found = bm25_search_nodes(connection, [self._tenant], query_text=query, filters=filters)
        return [self._make[node.node_id] for node in found]

    def read_terms(self, query: str) -> set[str]:
        """The terms that found anything."""
        with searching(self._database, self._tenant) as connection:
            explained = explain_hybrid_search(connection, [self._tenant], query_text=query)
        return {term for hit in explained.hits for term in hit.terms}


@pytest.fixture
def library(database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert) -> Library:
    return Library(database, make_tenant(), upsert)


def test_a_question_finds_nodes_by_any_of_its_words(library: Library, make_node: MakeNode) -> None:
    library.add(
        make_node,
        refund="Refunds are paid within ten days of the return.",
        shipping="Parcels leave the warehouse every morning.",
        the="The the the of of and.",
    )

    assert library.find("How long does it take until my refund is paid?") == ["refund"]
    assert library.find("When will the warehouse send the refunded parcel?") == [
        "shipping",
        "refund",
    ]
    assert library.read_terms("When is the refund paid?") == {"refund", "paid"}
    assert library.find("Is it the one of them?") == []
    assert library.find("zebra crossing") == []


def test_more_matching_words_rank_higher(library: Library, make_node: MakeNode) -> None:
    library.add(
        make_node,
        one="A red boat on the lake.",
        two="A red boat with a torn sail.",
        none="A green hill far away.",
    )

    assert library.find("which red boat has a torn sail") == ["two", "one"]


def test_inflections_meet_by_the_language_of_the_node(
    library: Library, make_node: MakeNode
) -> None:
    library.add(make_node, en="He was running past the houses.")
    library.add(make_node, lang="de", de="Die Häuser stehen neben den Gärten.")
    library.add(make_node, lang="xx", unknown="Gibberish tokens remain untouched.")

    assert library.find("runs house") == ["en"]
    # Haus and Häuser share a stem only in German; gärten likewise.
    assert library.find("Häusern") == ["de"]
    assert library.find("Häusern", lang="de") == ["de"]
    assert library.find("Garten", lang="de") == library.find("Garten") == ["de"]
    assert library.find("Häusern", lang="en") == []
    assert library.find("tokens") == ["unknown"]
    assert library.find("token", lang="xx") == []


def test_a_language_that_came_with_an_update_is_searched_from_then_on(
    library: Library, make_node: MakeNode
) -> None:
    library.add(make_node, a="Gärten")
    assert library.find("Garten") == []

    library.add(make_node, lang="de", a="Gärten")

    assert library.find("Garten") == ["a"]


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("customerEmail", ["customer", "email", "customer email"]),
        ("cust_email_addr", ["cust", "email", "addr", "cust email addr"]),
        ("error E1234", ["error", "E1234", "e1234"]),
    ],
)
def test_an_identifier_is_found_by_its_parts_and_whole(
    library: Library, make_node: MakeNode, identifier: str, parts: list[str]
) -> None:
    texts = {f"part{i}": f"About the {part} here" for i, part in enumerate(parts)}
    library.add(
        make_node, whole=f"Column {identifier} of the table", other="no such thing", **texts
    )

    for query in (*parts, identifier, identifier.lower(), f"where is {identifier}?"):
        assert "whole" in library.find(query), query
        assert "other" not in library.find(query)
    assert set(library.find(identifier)) == {"whole", *texts}


def test_short_mixed_words_stay_whole(library: Library, make_node: MakeNode) -> None:
    library.add(make_node, rna="The mRNA and the pH were measured.", letter="The letter m.")

    assert library.find("mRNA") == ["rna"]
    assert library.find("pH") == ["rna"]
    assert library.find("HTTPServer") == []
