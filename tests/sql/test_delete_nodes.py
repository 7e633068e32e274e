"""delete_nodes: what goes with a node, and what stays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import delete_nodes, upsert_links
from service.errors import Forbidden, InvalidInput, NotFound
from service.types import DeletedNode, LinkDraft
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent, read_statistics, snapshot


def delete(
    database: LiveDatabase, tenant: str, external_ids: Sequence[str], dataset_name: str = "default"
) -> list[DeletedNode]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return delete_nodes(
            connection, tenant, external_ids=external_ids, dataset_name=dataset_name
        )


def test_a_deleted_node_is_gone_from_every_table_and_the_statistics(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    nodes = [make_node("a", "red apples"), make_node("b", "red pears")]
    made = upsert(tenant, nodes, embeddings=[np.eye(8, dtype=np.float32)[0]] * 2)
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("""
            insert into node_ranks (tenant_id, node_id, rank)
            select tenant_id, node_id, 1 from knowledge_nodes;
            insert into contextforge.ann_nodes (
                tenant_id, node_id, article_id, node_type, dataset_name, embedding
            )
            select tenant_id, node_id, article_id, node_type, dataset_name, embedding
            from contextforge.search_nodes
        """)

    gone = delete(database, tenant, ["a"])

    assert gone == [DeletedNode("a", made[0].node_id)]
    with owner_transaction(database.admin) as connection:
        for table in ("knowledge_nodes", "node_ranks", "contextforge.search_nodes"):
            left = connection.exec_driver_sql(f"select node_id from {table}").scalars().all()
            assert left == [made[1].node_id]
        indexed = connection.exec_driver_sql("select node_id from contextforge.ann_nodes").scalars()
        assert indexed.all() == [made[1].node_id]
        assert read_statistics(connection, tenant).frequencies == {"red": 1, "pear": 1}
    assert_consistent(database, tenant)


def test_children_of_every_depth_go_with_their_parent(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    names = {"a": None, "b": "a", "c": "b", "other": None}
    upsert(tenant, [make_node(name, name, parent=parent) for name, parent in names.items()])

    assert {n.external_id for n in delete(database, tenant, ["a"])} == {"a", "b", "c"}
    assert {n.external_id for n in delete(database, tenant, ["other", "a"])} == {"other"}
    assert_consistent(database, tenant)


def test_a_child_may_be_named_beside_its_parent(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red"), make_node("b", "green", parent="a")])

    assert len(delete(database, tenant, ["b", "a", "b"])) == 2
    assert_consistent(database, tenant)


def test_links_go_with_either_end(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node(name) for name in "abc"])
    links = [LinkDraft("a", "b"), LinkDraft("b", "c"), LinkDraft("c", "a")]
    with tenant_transaction(database.engine, [tenant]) as connection:
        upsert_links(connection, tenant, links=links)

    delete(database, tenant, ["a"])

    with owner_transaction(database.admin) as connection:
        assert connection.exec_driver_sql("select count(*) from node_links").scalar_one() == 1


def test_an_unknown_external_id_deletes_nothing(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red")])
    before = snapshot(database, tenant)

    assert delete(database, tenant, ["nobody"]) == []
    assert delete(database, tenant, []) == []
    assert delete(database, tenant, ["a"], "another dataset") == []
    assert snapshot(database, tenant) == before


def test_deleting_in_one_tenant_leaves_the_other_alone(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    for tenant in (acme, globex):
        upsert(tenant, [make_node("a", "red"), make_node("b", "red")])
    before = snapshot(database, globex)

    delete(database, acme, ["a", "b"])

    assert snapshot(database, globex) == before
    assert_consistent(database, acme, globex)


def test_a_tenant_one_may_not_see_is_forbidden_and_one_that_is_not_there_not_found(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    upsert(globex, [make_node("a", "red")])

    with (
        pytest.raises(Forbidden, match='may not see tenant "globex"'),
        tenant_transaction(database.engine, [acme]) as connection,
    ):
        delete_nodes(connection, globex, external_ids=["a"])
    with pytest.raises(NotFound, match='"nobody" does not exist'):
        delete(database, "nobody", ["a"])
    assert len(delete(database, globex, ["a"])) == 1


def test_a_nul_byte_in_an_external_id_is_invalid_input(
    make_tenant: MakeTenant, database: LiveDatabase
) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        delete(database, make_tenant(), ["a\x00b"])
