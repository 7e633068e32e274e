"""Filters act inside both legs: whenever enough nodes match, enough come back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.db.search import (
    bm25_search_nodes,
    explain_hybrid_search,
    hybrid_search_nodes,
    similar_nodes,
    vector_search_nodes,
)
from service.errors import NotFound
from service.types import Json, NodeDraft, SearchFilters
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import at_cosine, random_vectors, searching, vector

EAST = vector(1)


def find(
    database: LiveDatabase,
    tenants: Sequence[str],
    filters: SearchFilters | None = None,
    *,
    node_types: Sequence[str] | None = None,
    dataset_name: str | None = None,
    top_k: int = 20,
) -> set[int]:
    """What an apple is found by; all three searches must agree."""
    with searching(database, *tenants) as connection:
        keyword = bm25_search_nodes(
            connection,
            tenants,
            query_text="apple",
            filters=filters,
            node_types=node_types,
            dataset_name=dataset_name,
            top_k=top_k,
        )
        near = vector_search_nodes(
            connection,
            tenants,
            query_embedding=EAST,
            filters=filters,
            node_types=node_types,
            dataset_name=dataset_name,
            top_k=top_k,
        )
        both = hybrid_search_nodes(
            connection,
            tenants,
            query_text="apple",
            query_embedding=EAST,
            filters=filters,
            node_types=node_types,
            dataset_name=dataset_name,
            top_k=top_k,
        )
    found = {node.node_id for node in keyword}
    assert found == {node.node_id for node in near} == {hit.node_id for hit in both}
    assert len(found) == len(keyword) == len(near) == len(both)
    return found


def count_found(
    database: LiveDatabase,
    tenants: Sequence[str],
    filters: SearchFilters | None = None,
    *,
    top_k: int,
) -> set[int]:
    """How many each of the three searches finds."""
    with searching(database, *tenants) as connection:
        return {
            len(found)
            for found in (
                bm25_search_nodes(
                    connection, tenants, query_text="apple", filters=filters, top_k=top_k
                ),
                vector_search_nodes(
                    connection, tenants, query_embedding=EAST, filters=filters, top_k=top_k
                ),
                hybrid_search_nodes(
                    connection,
                    tenants,
                    query_text="apple",
                    query_embedding=EAST,
                    filters=filters,
                    top_k=top_k,
                ),
            )
        }


class Shelf:
    """Nodes about apples with vectors of their own, known by their external ids."""

    def __init__(self, database: LiveDatabase, upsert: Upsert) -> None:
        self._database, self._upsert = database, upsert
        self._names: dict[int, str] = {}

    def add(self, *drafts: NodeDraft, dataset_name: str = "default") -> None:
        made = self._upsert(
            "acme",
            drafts,
            embeddings=[
                v if draft.searchable else None
                for draft, v in zip(drafts, random_vectors(len(drafts)), strict=True)
            ],
            dataset_name=dataset_name,
        )
        self._names |= {n.node_id: n.external_id for n in made}

    def find(
        self,
        *,
        node_types: Sequence[str] | None = None,
        dataset_name: str | None = None,
        **filters: object,
    ) -> set[str]:
        found = find(
            self._database,
            ["acme"],
            SearchFilters(**filters) if filters else None,  # type: ignore[arg-type]
            node_types=node_types,
            dataset_name=dataset_name,
        )
        return {self._names[node_id] for node_id in found}

    def id_of(self, external_id: str) -> int:
        return next(node_id for node_id, name in self._names.items() if name == external_id)


@pytest.fixture
def shelf(database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert) -> Shelf:
    make_tenant()
    return Shelf(database, upsert)


def test_type_dataset_language_and_space_each_keep_what_is_theirs(
    shelf: Shelf, make_node: MakeNode
) -> None:
    shelf.add(
        make_node("a", "apple"),
        make_node("b", "apple", node_type="field", lang="en"),
        make_node("c", "apple", node_type="section", lang="de", space_id="s1"),
        make_node("d", "apple", lang="xx", space_id="s2"),
    )
    shelf.add(make_node("e", "apple", space_id="s1"), dataset_name="wiki")

    assert shelf.find() == set("abcde")
    assert shelf.find(node_types=["field"]) == {"b"}
    assert shelf.find(node_types=["field", "section", "none"]) == {"b", "c"}
    assert shelf.find(node_types=[]) == set()
    assert shelf.find(dataset_name="wiki") == {"e"}
    assert shelf.find(dataset_name="nowhere") == set()
    assert shelf.find(lang="en") == {"a", "b", "e"}  # the tenant's, where a node states none
    assert shelf.find(lang="xx") == {"d"}
    assert shelf.find(lang="de") == {"c"}
    assert shelf.find(space_id="s1") == {"c", "e"}
    assert shelf.find(space_id="s1", dataset_name="wiki") == {"e"}
    assert shelf.find(space_id="s1", lang="xx") == set()


def test_a_document_is_its_sections_and_itself(shelf: Shelf, make_node: MakeNode) -> None:
    shelf.add(
        make_node("whole", "apple", searchable=False),
        make_node("whole#1", "apple", node_type="section", parent="whole"),
        make_node("whole#2", "apple", node_type="section", parent="whole"),
        make_node("plain", "apple"),
        make_node("plain#1", "apple", node_type="section", parent="plain"),
        make_node("other", "apple"),
    )
    shelf.add(make_node("plain", "apple"), dataset_name="wiki")

    assert shelf.find(docs=["whole"]) == {"whole#1", "whole#2"}
    assert shelf.find(docs=["plain"], dataset_name="default") == {"plain", "plain#1"}
    assert shelf.find(docs=["whole", "other"]) == {"whole#1", "whole#2", "other"}
    assert shelf.find(docs=["missing"]) == set()
    assert shelf.find(docs=["plain"], dataset_name="wiki") == {"plain"}


def test_metadata_is_compared_by_equality_at_any_depth(shelf: Shelf, make_node: MakeNode) -> None:
    stored: dict[str, dict[str, Json]] = {
        "a": {"year": 2024, "owner": {"team": "data", "lead": "kim"}},
        "b": {"year": 2024, "owner": {"team": "web"}},
        "c": {"year": "2024", "draft": True},
        "d": {},
    }
    shelf.add(*(make_node(name, "apple", metadata=m) for name, m in stored.items()))

    assert shelf.find(metadata={"year": 2024}) == {"a", "b"}
    assert shelf.find(metadata={"year": "2024"}) == {"c"}
    assert shelf.find(metadata={"owner": {"team": "data"}}) == {"a"}
    assert shelf.find(metadata={"year": 2024, "owner": {"team": "web"}}) == {"b"}
    assert shelf.find(metadata={"draft": True}) == {"c"}
    assert shelf.find(metadata={"draft": None}) == set()


def test_what_contains_unwanted_metadata_is_left_out(
    shelf: Shelf, make_node: MakeNode, database: LiveDatabase
) -> None:
    stored = {"a": {"year": 2024, "bad": True}, "b": {"year": 2024, "bad": False}, "c": {}}
    shelf.add(*(make_node(name, "apple", metadata=m) for name, m in stored.items()))

    assert shelf.find(without_metadata={"bad": True}) == {"b", "c"}
    assert shelf.find(without_metadata={"bad": True}, metadata={"year": 2024}) == {"b"}
    assert shelf.find(without_metadata={"bad": True, "year": 1999}) == {"a", "b", "c"}
    with searching(database, "acme") as connection:
        found = connection.exec_driver_sql(
            "select count(*) from bm25_search_nodes("
            "'apple', array['acme'], filters => '{\"without_metadata\": {}}')"
        ).scalar()
    assert found == 3


def test_a_node_with_an_acl_comes_back_only_for_a_group_it_shares(
    database: LiveDatabase, shelf: Shelf, make_node: MakeNode
) -> None:
    shelf.add(
        make_node("open", "apple", title="fruit"),
        make_node("staff", "apple", title="fruit", acl=["staff"]),
        make_node("both", "apple", title="fruit", acl=["staff", "legal"]),
        make_node("legal", "apple", title="fruit", acl=["legal"]),
    )

    assert shelf.find() == {"open"}
    assert shelf.find(space_id="none") == set()
    assert shelf.find(acl_groups=["guests"]) == {"open"}
    assert shelf.find(acl_groups=["staff"]) == {"open", "staff", "both"}
    assert shelf.find(acl_groups=["staff", "legal"]) == {"open", "staff", "both", "legal"}
    with searching(database, "acme") as connection:
        like_open = similar_nodes(connection, ["acme"], node_id=shelf.id_of("open"))
        like_staff = similar_nodes(
            connection,
            ["acme"],
            node_id=shelf.id_of("staff"),
            filters=SearchFilters(acl_groups=["staff"]),
        )
        explained = explain_hybrid_search(connection, ["acme"], query_text="apple")
    assert like_open == []
    assert {hit.node_id for hit in like_staff} == {shelf.id_of("open"), shelf.id_of("both")}
    assert [hit.node_id for hit in explained.hits] == [shelf.id_of("open")]
    with pytest.raises(NotFound), searching(database, "acme") as connection:
        similar_nodes(connection, ["acme"], node_id=shelf.id_of("legal"))


def test_an_acl_that_is_set_later_hides_the_node_at_once(shelf: Shelf, make_node: MakeNode) -> None:
    shelf.add(make_node("a", "apple"), make_node("b", "apple"))
    assert shelf.find() == {"a", "b"}

    shelf.add(make_node("a", "apple", acl=["staff"]))

    assert shelf.find() == {"b"}


def test_tenants_of_any_share_get_as_many_as_they_ask_for(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    sizes = {"tiny": 5, "small": 50, "medium": 500, "big": 4445}
    for place, (tenant, size) in enumerate(sizes.items()):
        make_tenant(tenant)
        drafts = [
            make_node(f"n{i}", "apple " * (1 + i % 7), space_id="rare" if i % 80 == 3 else None)
            for i in range(size)
        ]
        upsert(tenant, drafts, embeddings=list(random_vectors(size, seed=place)))

    for tenant, size in sizes.items():
        for top_k in (1, 20, 300):
            assert count_found(database, [tenant], top_k=top_k) == {min(size, top_k)}
        rare = sum(i % 80 == 3 for i in range(size))
        assert count_found(database, [tenant], SearchFilters(space_id="rare"), top_k=40) == {
            min(rare, 40)
        }
    assert count_found(database, list(sizes), top_k=1000) == {1000}


def test_a_filter_that_keeps_only_the_worst_ranked_nodes_still_returns_all_of_them(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    acme = make_tenant()
    crowd = [make_node(f"n{i}", "apple apple") for i in range(2500)]
    last = [make_node(f"last{i}", "apple " + "pear " * 50, node_type="rare") for i in range(10)]
    upsert(acme, crowd, embeddings=[EAST] * len(crowd))
    made = upsert(acme, last, embeddings=[at_cosine(-0.9)] * len(last))

    found = find(database, [acme], node_types=["rare"], top_k=10)

    assert found == {n.node_id for n in made}
