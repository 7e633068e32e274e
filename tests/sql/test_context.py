"""Reading nodes and their neighbours: in order, with their vectors, for whoever may see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from sqlalchemy import Connection

from service.db.context import list_neighbours, read_nodes
from service.db.engine import plain_transaction
from service.errors import Forbidden, InvalidInput
from service.types import NodeDraft, Vector
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import TEXTS, random_vectors, searching

Read = Callable[[Connection, Sequence[str], Sequence[int]], object]
READS: dict[str, Read] = {
    "nodes": lambda c, t, ids: read_nodes(c, t, node_ids=ids, with_embeddings=True),
    "neighbours": lambda c, t, ids: list_neighbours(c, t, node_ids=ids),
}


def article(
    make_node: MakeNode, name: str, *, sections: int = 5, **fields: object
) -> list[NodeDraft]:
    """An article whose sections stand in order."""
    return [
        make_node(name, "whole", title=name, searchable=False),
        *(
            make_node(
                f"{name}#{place}",
                TEXTS[place],
                node_type="section",
                title=name,
                parent=name,
                section_path="Harbour",
                order_index=place,
                header="Harbour",
                doc_title=name,
                url=f"https://example.org/{name}",
                lang="en",
                token_count=12,
                metadata={"place": place},
                **fields,
            )
            for place in range(sections)
        ),
    ]


def count_rows_read(connection: Connection) -> int:
    """How many rows of nodes this session has read, by index or not."""
    rows = connection.exec_driver_sql(
        "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer"
        " from pg_stat_xact_user_tables where relname in ('knowledge_nodes', 'search_nodes')"
    ).scalar_one()
    return int(rows)


@pytest.fixture
def acme(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> dict[str, int]:
    """The ids of two articles with five sections each, by external id."""
    make_tenant("acme")
    drafts = [*article(make_node, "north"), *article(make_node, "south")]
    vectors: list[Vector | None] = [
        None if draft.node_type == "article" else row
        for draft, row in zip(drafts, random_vectors(len(drafts)), strict=True)
    ]
    done = upsert("acme", drafts, embeddings=vectors, embedder_version="toy@1")
    return {node.external_id: node.node_id for node in done}


def test_nodes_come_in_the_order_asked_for_with_every_field(
    database: LiveDatabase, acme: dict[str, int]
) -> None:
    wanted = [acme["south#2"], acme["north#4"], acme["south#2"], 2**31 - 1]
    with searching(database, "acme") as connection:
        found = [each.node for each in read_nodes(connection, ["acme"], node_ids=wanted)]
    assert [node.external_id for node in found] == ["south#2", "north#4"]
    node = found[0]
    assert (node.tenant_id, node.dataset_name, node.node_type) == ("acme", "default", "section")
    assert (node.title, node.header, node.section_path) == ("south", "Harbour", "Harbour")
    assert (node.content, node.order_index, node.token_count) == (TEXTS[2], 2, 12)
    assert (node.parent_id, node.doc_title) == (acme["south"], "south")
    assert (node.url, node.lang, node.metadata) == ("https://example.org/south", "en", {"place": 2})
    assert isinstance(node.content_hash, bytes)


def test_vectors_are_those_search_compares_and_only_come_when_asked_for(
    database: LiveDatabase, acme: dict[str, int]
) -> None:
    ids = list(acme.values())
    with searching(database, "acme") as connection:
        plain = read_nodes(connection, ["acme"], node_ids=ids)
        found = read_nodes(connection, ["acme"], node_ids=ids, with_embeddings=True)
        stored = connection.exec_driver_sql(
            "select node_id, embedding::real[] from contextforge.search_nodes"
            " where tenant_id = 'acme'"
        ).all()
    assert [each.embedding for each in plain] == [None] * len(ids)
    assert [each.node for each in plain] == [each.node for each in found]
    expected = {node_id: np.array(values, np.float32) for node_id, values in stored}
    assert len(expected) == 10
    for each in found:
        if each.node.node_type == "article":
            assert each.embedding is None
        else:
            assert each.embedding is not None
            assert each.embedding.dtype == np.float32
            np.testing.assert_array_equal(each.embedding, expected[each.node.node_id])


def test_neighbours_stand_in_document_order_within_the_reach_and_the_article(
    database: LiveDatabase, acme: dict[str, int]
) -> None:
    seeds = [acme["north#0"], acme["north#2"], acme["south#4"], acme["north"]]
    with searching(database, "acme") as connection:
        near = list_neighbours(connection, ["acme"], node_ids=seeds)
        far = list_neighbours(connection, ["acme"], node_ids=seeds, reach=2)
    names = {seed: [node.external_id for node in nodes] for seed, nodes in near.items()}
    assert names == {
        acme["north#0"]: ["north#1"],
        acme["north#2"]: ["north#1", "north#3"],
        acme["south#4"]: ["south#3"],
    }
    assert [node.external_id for node in far[acme["north#2"]]] == [
        "north#0",
        "north#1",
        "north#3",
        "north#4",
    ]


@pytest.mark.parametrize("name", sorted(READS))
def test_a_tenant_without_statistics_is_read_a_few_times_and_not_once_a_node(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert, name: str
) -> None:
    make_tenant("acme")
    drafts = [each for number in range(150) for each in article(make_node, f"a{number}")]
    seeds = [done.node_id for done in upsert("acme", drafts) if done.external_id.endswith("#2")]
    with searching(database, "acme") as connection:
        before = count_rows_read(connection)
        READS[name](connection, ["acme"], seeds)
        read = count_rows_read(connection) - before
    assert len(seeds) == 150
    assert 150 <= read <= 3 * len(drafts)


def test_a_reach_of_nothing_is_refused(database: LiveDatabase, acme: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="reach of 0"), searching(database, "acme") as connection:
        list_neighbours(connection, ["acme"], node_ids=[acme["north#1"]], reach=0)


def test_nodes_and_neighbours_with_groups_are_read_by_their_members_only(
    database: LiveDatabase,
    make_tenant: MakeTenant,
    make_node: MakeNode,
    upsert: Upsert,
) -> None:
    make_tenant("acme")
    drafts = [*article(make_node, "open"), *article(make_node, "closed", acl=["legal", "board"])]
    ids = {node.external_id: node.node_id for node in upsert("acme", drafts)}
    asked = [ids["open#1"], ids["closed#1"]]
    with searching(database, "acme") as connection:
        for groups, seen in (
            ((), ["open"]),
            (("staff",), ["open"]),
            (("board",), ["open", "closed"]),
        ):
            nodes = read_nodes(connection, ["acme"], node_ids=asked, acl_groups=groups)
            near = list_neighbours(connection, ["acme"], node_ids=asked, acl_groups=groups)
            assert [each.node.doc_title for each in nodes] == seen
            assert {node.doc_title for nodes in near.values() for node in nodes} == set(seen)


def test_neither_nodes_nor_neighbours_of_another_tenant_are_read(
    database: LiveDatabase,
    acme: dict[str, int],
    make_tenant: MakeTenant,
    make_node: MakeNode,
    upsert: Upsert,
) -> None:
    make_tenant("globex")
    done = upsert("globex", article(make_node, "north"))
    theirs = {node.external_id: node.node_id for node in done}
    asked = [acme["north#1"], theirs["north#1"]]
    with searching(database, "acme", "globex") as connection:
        # The transaction may see both; the call names one.
        found = read_nodes(connection, ["acme"], node_ids=asked)
        near = list_neighbours(connection, ["acme"], node_ids=asked)
        both = read_nodes(connection, ["acme", "globex"], node_ids=asked)
        near_both = list_neighbours(connection, ["acme", "globex"], node_ids=asked)
    assert [each.node.tenant_id for each in found] == ["acme"]
    assert list(near) == [acme["north#1"]]
    assert [each.node.tenant_id for each in both] == ["acme", "globex"]
    assert [[node.tenant_id for node in near_both[seed]] for seed in asked] == [
        ["acme"] * 2,
        ["globex"] * 2,
    ]
    for read in READS.values():
        for tenants in (["globex"], ["acme", "globex"], ["nowhere"]):
            with pytest.raises(Forbidden), searching(database, "acme") as connection:
                read(connection, tenants, asked)
        with pytest.raises(Forbidden), plain_transaction(database.engine) as connection:
            read(connection, ["acme"], asked)
        with pytest.raises(InvalidInput), searching(database, "acme") as connection:
            read(connection, [], asked)
