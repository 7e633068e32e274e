"""Deleters beside writers, deleters and upkeep: no error for anybody, nothing left behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from time import monotonic, sleep

import numpy as np
from sqlalchemy import Connection

from service.db.engine import owner_transaction, tenant_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import delete_nodes, upsert_nodes
from service.types import NodeDraft
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent


def delete(database: LiveDatabase, tenant: str, external_ids: list[str]) -> list[str]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        gone = delete_nodes(connection, tenant, external_ids=external_ids)
    return sorted(node.external_id for node in gone)


def read_names(database: LiveDatabase) -> list[str]:
    with owner_transaction(database.admin) as connection:
        statement = "select external_id from knowledge_nodes order by 1"
        return list(connection.exec_driver_sql(statement).scalars())


def wait_until_blocked(connection: Connection) -> None:
    """Wait until another session waits for a lock that this one holds."""
    deadline = monotonic() + 10
    # Not pg_stat_activity, which stays the same to the end of a transaction.
    asked = "select true from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid))"
    while not connection.exec_driver_sql(asked).scalar():
        assert monotonic() < deadline
        sleep(0.01)


def test_writers_and_deleters_of_the_same_documents_all_succeed(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()

    def draft_document(name: str, text: str) -> list[NodeDraft]:
        parents = {name: None, f"{name}/1": name, f"{name}/2": name, f"{name}/1/1": f"{name}/1"}
        return [make_node(each, text, parent=parent) for each, parent in parents.items()]

    def work(worker: int) -> None:
        random = Random(worker)
        for turn in range(20):
            names = random.sample("abcd", 2)
            if random.random() < 0.4:
                delete(database, tenant, names)
            else:
                nodes = [
                    node
                    for name in names
                    for node in draft_document(name, f"w{random.randrange(5)} v{worker} {turn}")
                ]
                upsert(tenant, random.sample(nodes, len(nodes)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))

    assert_consistent(database, tenant)
    for name in "abcd":
        upsert(tenant, draft_document(name, "the last"))
    assert len(delete(database, tenant, list("abcd"))) == 16
    assert read_names(database) == []
    assert_consistent(database, tenant)


def test_deleters_who_name_the_same_nodes_in_other_orders_share_them(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    names = [f"{number:02}" for number in range(40)]
    parents = [None, *(names[place // 2] for place in range(39))]
    ready = Barrier(6)

    def work(worker: int) -> list[str]:
        ready.wait()
        return delete(database, tenant, Random(worker).sample(names, 25))

    for _ in range(4):
        drafts = zip(names, parents, strict=True)
        upsert(tenant, [make_node(name, "red apples", parent=parent) for name, parent in drafts])
        with ThreadPoolExecutor(6) as pool:
            gone = [name for each in pool.map(work, range(6)) for name in each]
        assert len(gone) == len(set(gone))
        assert sorted([*gone, *read_names(database)]) == names
        assert_consistent(database, tenant)


def test_a_child_written_while_its_parent_is_being_deleted_goes_too(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red"), make_node("b", "green", parent="a")])

    with ThreadPoolExecutor(1) as pool:
        with tenant_transaction(database.engine, [tenant]) as connection:
            grandchild = make_node("c", "blue", parent="b")
            upsert_nodes(connection, tenant, nodes=[grandchild])
            deletion = pool.submit(delete, database, tenant, ["a"])
            wait_until_blocked(connection)
        assert deletion.result(timeout=10) == ["a", "b", "c"]

    assert read_names(database) == []
    assert_consistent(database, tenant)


def test_a_child_moved_away_while_its_parent_is_being_deleted_stays(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red"), make_node("b", "green", parent="a"), make_node("z")])

    with ThreadPoolExecutor(1) as pool:
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_nodes(connection, tenant, nodes=[make_node("b", "green", parent="z")])
            deletion = pool.submit(delete, database, tenant, ["a"])
            wait_until_blocked(connection)
        assert deletion.result(timeout=10) == ["a"]

    assert read_names(database) == ["b", "z"]
    assert_consistent(database, tenant)


def test_a_node_that_upkeep_is_indexing_leaves_no_vector_behind(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red")], embeddings=[np.ones(8, np.float32)])
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("update contextforge.installation set exact_limit = 0")

    with ThreadPoolExecutor(1) as pool:
        with tenant_transaction(database.engine, [tenant]) as connection:
            assert refresh_ann(connection, tenant) == 1
            deletion = pool.submit(delete, database, tenant, ["a"])
            wait_until_blocked(connection)
        assert deletion.result(timeout=10) == ["a"]

    with owner_transaction(database.admin) as connection:
        left = connection.exec_driver_sql("select count(*) from contextforge.ann_nodes")
        assert left.scalar_one() == 0
