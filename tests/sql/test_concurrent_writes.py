"""Writers at the same time: one version of each node, no deadlock, statistics that are right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import delete_nodes
from service.errors import Conflict, InvalidInput
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent


def test_sixteen_writers_of_one_document_leave_one_version(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()

    def write(writer: int) -> list[str]:
        names = ["a", "b", "c"] if writer % 2 else ["c", "b", "a"]
        nodes = [make_node(name, f"text number{writer} word{writer % 4}") for name in names]
        return [n.action for n in upsert(tenant, nodes)]

    with ThreadPoolExecutor(16) as pool:
        actions = [action for batch in pool.map(write, range(16)) for action in batch]

    assert actions.count("added") == 3
    assert actions.count("changed") == 45
    assert_consistent(database, tenant)
    with owner_transaction(database.admin) as connection:
        stored = connection.exec_driver_sql("select content from knowledge_nodes").scalars().all()
    assert len(stored) == 3
    assert len(set(stored)) <= 3


def test_writers_of_the_same_new_parents_and_children_all_succeed(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()

    def write(writer: int) -> None:
        for turn in range(6):
            parents = [make_node(f"{turn}{name}", f"by {writer}") for name in "abc"]
            children = [
                make_node(f"{node.external_id}/1", f"by {writer}", parent=node.external_id)
                for node in parents
            ]
            upsert(tenant, Random(writer).sample(parents + children, 6))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))

    assert_consistent(database, tenant)
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql("select count(*), count(parent_id) from knowledge_nodes")
        assert tuple(rows.one()) == (36, 18)


def test_writers_and_deleters_of_the_same_nodes_leave_right_statistics(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()

    def work(worker: int) -> int:
        random, refused = Random(worker), 0
        for turn in range(15):
            names = random.sample("abcdef", 3)
            nodes = [make_node(name, f"w{random.randrange(5)} v{turn}") for name in names]
            child = make_node(f"{names[0]}/1", f"c{turn}", parent=names[0])
            try:
                if random.random() < 0.3:
                    with tenant_transaction(database.engine, [tenant]) as connection:
                        delete_nodes(connection, tenant, external_ids=names[:1])
                else:
                    upsert(tenant, [*nodes, child])
            except (Conflict, InvalidInput):
                refused += 1  # a deadlock, or a parent that went away: refused whole
        return refused

    with ThreadPoolExecutor(4) as pool:
        refused = sum(pool.map(work, range(4)))

    assert refused < 15
    assert_consistent(database, tenant)
