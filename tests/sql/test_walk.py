"""The walk along links from the best hits: how far it goes, and what it never shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from service.db.engine import tenant_transaction
from service.db.nodes import upsert_links
from service.db.ranks import read_neighbourhood, stand_in_nodes
from service.errors import Forbidden, InvalidInput
from service.retrieval.walk import personalised_walk
from service.types import LinkDraft, NodeDraft, SearchFilters, Vector
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase

NodeIds = dict[str, int]
Fill = Callable[..., NodeIds]


def unit(place: int) -> Vector:
    vector: Vector = np.eye(8, dtype=np.float32)[place]
    return vector


@pytest.fixture
def fill(database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert) -> Fill:
    """fill(tenant, nodes, "ab bc"): a tenant with these nodes and links, ids by external_id."""

    def create(
        tenant: str,
        nodes: Sequence[NodeDraft],
        links: str = "",
        *,
        embeddings: Sequence[Vector | None] | None = None,
    ) -> NodeIds:
        make_tenant(tenant)
        stored = upsert(tenant, nodes, embeddings=embeddings)
        drafts = [LinkDraft(pair[0], pair[1]) for pair in links.split()]
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_links(connection, tenant, links=drafts)
        return {node.external_id: node.node_id for node in stored}

    return create


@pytest.fixture
def letters(make_node: MakeNode) -> Callable[[str], list[NodeDraft]]:
    """letters("abc"): an article for each letter."""
    return lambda names: [make_node(name, f"text {name}") for name in names]


def walk(
    database: LiveDatabase, tenants: list[str], seeds: Sequence[int], **options: object
) -> list[int]:
    given = {"limit": 20, **options}
    with tenant_transaction(database.engine, tenants) as connection:
        walked = personalised_walk(
            connection,
            tenants,
            dict.fromkeys(seeds, 1.0),
            **given,  # type: ignore[arg-type]
        )
    assert [node.score for node in walked] == sorted((n.score for n in walked), reverse=True)
    return [node.node_id for node in walked]


def test_the_walk_finds_what_hits_link_to_and_what_links_to_them(
    database: LiveDatabase, fill: Fill, letters
):
    nodes = fill("acme", letters("abcdef"), "ab ca bd ef")
    reached = walk(database, ["acme"], [nodes["a"]])
    assert set(reached) == {nodes[name] for name in "abcd"}
    assert reached.index(nodes["b"]) < reached.index(nodes["d"])


def test_the_walk_goes_two_steps_and_not_three(database: LiveDatabase, fill: Fill, letters):
    nodes = fill("acme", letters("abcde"), "ab bc cd de")
    assert set(walk(database, ["acme"], [nodes["a"]])) == {nodes[name] for name in "abc"}


def test_the_walk_never_leaves_its_tenants(database: LiveDatabase, fill: Fill, letters):
    acme = fill("acme", letters("ab"), "ab")
    globex = fill("globex", letters("ab"), "ab")
    both = [acme["a"], globex["a"]]
    assert set(walk(database, ["acme"], both)) == set(acme.values())
    assert set(walk(database, ["acme", "globex"], both)) == {*acme.values(), *globex.values()}


def test_a_tenant_the_caller_may_not_see_is_refused(database: LiveDatabase, fill: Fill, letters):
    nodes = fill("acme", letters("ab"), "ab")
    fill("globex", letters("ab"), "ab")
    for read in (read_neighbourhood, stand_in_nodes):
        with (
            pytest.raises(Forbidden),
            tenant_transaction(database.engine, ["globex"]) as connection,
        ):
            read(connection, ["acme"], node_ids=[nodes["a"]])


def test_without_links_or_seeds_there_is_nothing_to_walk(
    database: LiveDatabase, fill: Fill, letters
):
    nodes = fill("acme", letters("ab"))
    assert walk(database, ["acme"], [nodes["a"]]) == []
    assert walk(database, ["acme"], []) == []


def test_a_walk_is_no_longer_than_asked(database: LiveDatabase, fill: Fill, letters):
    nodes = fill("acme", letters("abcde"), "ab ac ad ae")
    assert walk(database, ["acme"], [nodes["a"]], limit=2) == [nodes["a"], nodes["b"]]


# --- sections ----------------------------------------------------------------------------------


@pytest.fixture
def with_sections(fill: Fill, make_node: MakeNode) -> NodeIds:
    """Article a with sections a1, a2 links to article b with sections b1, b2."""
    articles = [make_node(name, "text", searchable=False) for name in "ab"]
    sections = [
        make_node(f"{name}{n}", f"part {n}", node_type="section", parent=name, order_index=n)
        for name in "ab"
        for n in (1, 2)
    ]
    vectors = [None, None, unit(0), unit(1), unit(2), unit(3)]
    return fill("acme", [*articles, *sections], "ab", embeddings=vectors)


def test_a_section_walks_by_the_links_of_its_article(
    database: LiveDatabase, with_sections: NodeIds
):
    reached = walk(database, ["acme"], [with_sections["a1"]], query_embedding=unit(3))
    assert with_sections["b2"] in reached
    assert with_sections["b1"] not in reached


def test_an_article_is_shown_by_its_first_section_where_there_is_no_query(
    database: LiveDatabase, with_sections: NodeIds
):
    assert with_sections["b1"] in walk(database, ["acme"], [with_sections["a1"]])


def test_only_searchable_nodes_are_shown_and_each_once(
    database: LiveDatabase, with_sections: NodeIds
):
    reached = walk(database, ["acme"], [with_sections["a1"]], query_embedding=unit(0))
    assert len(reached) == len(set(reached)) == 2
    assert not {with_sections["a"], with_sections["b"]} & set(reached)


def test_a_query_of_another_dimension_is_refused(database: LiveDatabase, with_sections: NodeIds):
    with pytest.raises(InvalidInput, match="3 dimensions"):
        walk(
            database,
            ["acme"],
            [with_sections["a1"]],
            query_embedding=np.ones(3, dtype=np.float32),
        )


# --- filters -----------------------------------------------------------------------------------


def test_a_node_of_a_group_is_shown_to_its_members_alone(
    database: LiveDatabase, fill: Fill, make_node: MakeNode
):
    nodes = fill("acme", [make_node("a", "open"), make_node("b", "closed", acl=["staff"])], "ab")
    assert nodes["b"] not in walk(database, ["acme"], [nodes["a"]])
    for groups, shown in ((["guests"], False), (["staff"], True)):
        reached = walk(database, ["acme"], [nodes["a"]], filters=SearchFilters(acl_groups=groups))
        assert (nodes["b"] in reached) is shown


def test_filters_hold_for_what_the_walk_returns(
    database: LiveDatabase, fill: Fill, make_node: MakeNode
):
    nodes = fill(
        "acme",
        [
            make_node("a", "x", lang="en"),
            make_node("b", "y", lang="de"),
            make_node("c", "z", lang="en", node_type="field"),
        ],
        "ab bc",
    )
    english = SearchFilters(lang="en")
    assert set(walk(database, ["acme"], [nodes["a"]], filters=english)) == {nodes["a"], nodes["c"]}
    assert walk(database, ["acme"], [nodes["a"]], node_types=["field"]) == [nodes["c"]]
    assert walk(database, ["acme"], [nodes["a"]], dataset_name="other") == []


# --- bounds ------------------------------------------------------------------------------------


def neighbours(database: LiveDatabase, nodes: NodeIds, bounds: str) -> set[str]:
    names = {node_id: name for name, node_id in nodes.items()}
    with tenant_transaction(database.engine, ["acme"]) as connection:
        rows = connection.exec_driver_sql(
            f"select source_id, target_id from read_neighbourhood(%s, array['acme'], {bounds})",
            ([nodes["a"]],),
        )
        return {names[source] + names[target] for source, target in rows}


def test_a_node_with_too_many_links_passes_none_of_them_on(
    database: LiveDatabase, fill: Fill, letters
):
    nodes = fill("acme", letters("abcdefg"), "ab bc db eb fb ga")
    assert neighbours(database, nodes, "max_second_links => 4") == {
        *("ab", "ga", "bc", "db", "eb", "fb")
    }
    assert neighbours(database, nodes, "max_second_links => 3") == {"ab", "ga", "bc"}
    assert neighbours(database, nodes, "max_links => 0") == set()


def test_the_second_step_starts_where_the_most_links_lead(
    database: LiveDatabase, fill: Fill, letters
):
    nodes = fill("acme", letters("abcde"), "ab ac ca bd ce")
    assert neighbours(database, nodes, "max_nodes => 1") == {"ab", "ac", "ca", "ce"}


def test_several_links_between_two_nodes_are_one_of_their_weights(
    database: LiveDatabase, fill: Fill, letters
):
    nodes = fill("acme", letters("ab"), "ab")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        upsert_links(connection, "acme", links=[LinkDraft("a", "b", link_type="cites", weight=0.5)])
        links = read_neighbourhood(connection, ["acme"], node_ids=[nodes["a"], nodes["b"]])
    assert (links.sources.tolist(), links.weights.tolist()) == ([nodes["a"]], [1.5])
