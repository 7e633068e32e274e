"""The vector leg on HNSW: recall, the unindexed tail, updates, filters, isolation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from service.db.engine import owner_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import delete_nodes, upsert_nodes
from service.db.search import (
    explain_hybrid_search,
    hybrid_search_nodes,
    vector_search_nodes,
)
from service.types import NodeDraft, SearchFilters, Vector
from tests.conftest import NEWEST, MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase, LiveServer
from tests.sql.search_corpus import searching, vector, wait_for_locks

pytestmark = pytest.mark.slow

DIM = 64
EXACT_LIMIT = 2000
SIZES = {"whale": 18_000, "shark": 9_000, "trout": 1_900, "shrimp": 300, "krill": 30}
ON_HNSW = ("whale", "shark")
QUERIES = 40


class Sea:
    """Tenants of very different sizes whose vectors come from the same 300 clusters."""

    def __init__(self, database: LiveDatabase) -> None:
        self.database = database
        self._random = np.random.default_rng(5)
        self._centres = self._random.normal(size=(300, DIM))

    def draw(self, count: int) -> NDArray[np.float32]:
        centres = self._centres[self._random.integers(0, len(self._centres), count)]
        noise = self._random.normal(scale=0.6, size=(count, DIM))
        return (centres + noise).astype(np.float32)

    def write(self, tenant: str, places: Sequence[int], *, text: str = "fish") -> list[int]:
        made: list[int] = []
        for start in range(0, len(places), 3000):
            batch = places[start : start + 3000]
            drafts = [
                NodeDraft(
                    f"n{i}",
                    "article",
                    content=text,
                    space_id="rare" if i % 200 == 7 else "usual",
                    acl=["staff"] if i % 10 == 1 else (),
                )
                for i in batch
            ]
            with searching(self.database, tenant) as connection:
                made += [
                    n.node_id
                    for n in upsert_nodes(
                        connection, tenant, nodes=drafts, embeddings=list(self.draw(len(batch)))
                    )
                ]
        return made

    def refresh(self, tenant: str) -> int:
        moved, total = 1, 0
        while moved:
            with searching(self.database, tenant) as connection:
                moved = refresh_ann(connection, tenant, max_rows=5000)
            total += moved
        return total

    def find(
        self, tenants: Sequence[str], query: Vector, filters: SearchFilters | None = None
    ) -> list[int]:
        with searching(self.database, *tenants) as connection:
            found = vector_search_nodes(connection, tenants, query_embedding=query, filters=filters)
        return [node.node_id for node in found]

    def find_exactly(self, tenants: Sequence[str], query: Vector) -> list[int]:
        with searching(self.database, *tenants) as connection:
            return list(
                connection.exec_driver_sql(
                    "select node_id from contextforge.search_nodes where tenant_id = any(%s)"
                    " and acl is null"
                    " order by embedding <=> l2_normalize(%b::vector)::halfvec, tenant_id, node_id"
                    " limit 20",
                    (list(tenants), query),
                ).scalars()
            )

    def measure_recall(self, tenants: Sequence[str]) -> float:
        shares = [
            len(set(self.find(tenants, query)) & set(self.find_exactly(tenants, query))) / 20
            for query in self.draw(QUERIES)
        ]
        return float(np.mean(shares))

    def read_path(self, tenant: str) -> tuple[str | None, int | None]:
        with searching(self.database, tenant) as connection:
            explained = explain_hybrid_search(connection, [tenant], query_embedding=self.draw(1)[0])
        return explained.vector_path, explained.vector_rows


@pytest.fixture(scope="module")
def sea(servers: Callable[[int], LiveServer]) -> Iterator[Sea]:
    with servers(NEWEST).open_database(embedding_dim=DIM) as database:
        with owner_transaction(database.admin) as connection:
            connection.exec_driver_sql(
                "update contextforge.installation set exact_limit = %s", (EXACT_LIMIT,)
            )
            for tenant in SIZES:
                connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
        made = Sea(database)
        for tenant, size in SIZES.items():
            made.write(tenant, range(size))
            assert made.refresh(tenant) == (size if tenant in ON_HNSW else 0)
        with database.admin.begin() as connection:
            connection.exec_driver_sql("analyze")
        yield made


def test_large_tenants_are_searched_by_hnsw_and_small_ones_exactly(sea: Sea) -> None:
    for tenant in SIZES:
        path, rows = sea.read_path(tenant)
        assert path == ("hnsw" if tenant in ON_HNSW else "exact")
        assert rows is not None
        with searching(sea.database, tenant) as connection:
            assert (
                rows
                == connection.exec_driver_sql(
                    "select count(*) from contextforge.search_nodes where acl is null"
                ).scalar_one()
            )


def test_recall_is_high_on_hnsw_and_one_on_the_exact_path(sea: Sea) -> None:
    for tenant, size in SIZES.items():
        if tenant in ON_HNSW:
            assert sea.measure_recall([tenant]) >= 0.98
        elif size > 25:
            assert sea.measure_recall([tenant]) == 1.0
    assert sea.measure_recall(["whale", "krill"]) >= 0.98


def test_repeated_calls_give_the_same_and_leave_the_callers_settings(sea: Sea) -> None:
    query = sea.draw(1)[0]
    with searching(sea.database, "whale") as connection:
        connection.exec_driver_sql("set local hnsw.ef_search = 77")
        results = [
            hybrid_search_nodes(connection, ["whale"], query_text="fish", query_embedding=query)
            for _ in range(4)
        ]
        effort = connection.exec_driver_sql("show hnsw.ef_search").scalar_one()
        scan = connection.exec_driver_sql("show hnsw.iterative_scan").scalar_one()

    assert results == [results[0]] * 4
    assert len(results[0]) == 20
    assert (effort, scan) == ("77", "off")


def test_a_search_by_hnsw_may_stand_inside_a_parallel_query(sea: Sea) -> None:
    query = sea.draw(1)[0]
    expected = sea.find(["whale"], query)
    with searching(sea.database, "whale") as connection:
        connection.exec_driver_sql("set local debug_parallel_query = 'on'")
        found = vector_search_nodes(connection, ["whale"], query_embedding=query)
        joined = connection.exec_driver_sql(
            "select count(*) from hybrid_search_nodes(null, %b::vector, '{whale}', null) as h"
            " join knowledge_nodes as n using (node_id)",
            (query,),
        ).scalar_one()

    assert [node.node_id for node in found] == expected
    assert joined == 20


def test_the_length_of_the_query_vector_does_not_matter(sea: Sea) -> None:
    query = sea.draw(1)[0]
    expected = sea.find(["whale"], query)

    assert sea.find(["whale"], query * np.float32(1e6)) == expected
    assert sea.find(["whale"], query * np.float32(1e-9)) == expected


def test_filters_on_a_large_tenant_still_return_as_many_as_asked_for(sea: Sea) -> None:
    for filters, is_kept in (
        (SearchFilters(space_id="rare"), "space_id = 'rare' and acl = '{}'"),
        (SearchFilters(space_id="usual", acl_groups=["staff"]), "space_id = 'usual'"),
        (SearchFilters(), "acl = '{}'"),
    ):
        found = sea.find(["whale"], sea.draw(1)[0], filters)
        assert len(found) == 20
        with searching(sea.database, "whale") as connection:
            kept = connection.exec_driver_sql(
                f"select count(*) from knowledge_nodes where node_id = any(%s) and {is_kept}",
                (found,),
            ).scalar_one()
        assert kept == 20


def test_two_large_tenants_find_only_their_own_nodes(sea: Sea) -> None:
    for tenant in ON_HNSW:
        with searching(sea.database, tenant) as connection:
            own = set(connection.exec_driver_sql("select node_id from knowledge_nodes").scalars())
        for query in sea.draw(5):
            found = sea.find([tenant], query)
            assert len(found) == 20
            assert set(found) <= own


def test_updates_deletes_and_the_unindexed_tail_keep_recall(sea: Sea) -> None:
    size = SIZES["shark"]
    with searching(sea.database, "shark") as connection:
        gone = {
            n.node_id
            for n in delete_nodes(
                connection, "shark", external_ids=[f"n{i}" for i in range(0, size, 10)]
            )
        }
    sea.write("shark", range(5, size, 10), text="another fish")
    fresh = set(sea.write("shark", range(size, size + 500)))

    assert sea.read_path("shark")[0] == "hnsw"
    assert sea.measure_recall(["shark"]) >= 0.98
    with searching(sea.database, "shark") as connection:
        newest = connection.exec_driver_sql(
            "select node_id, embedding from knowledge_nodes where node_id = any(%s)"
            " and acl = '{}' limit 20",
            (list(fresh),),
        ).all()
    for node_id, embedding in newest:
        assert sea.find(["shark"], embedding)[0] == node_id
    assert sea.refresh("shark") == size // 10 + 500
    assert sea.measure_recall(["shark"]) >= 0.98
    for query in sea.draw(20):
        assert not gone & set(sea.find(["shark"], query))


def test_a_write_during_a_refresh_leaves_nothing_of_the_old_node_in_the_index(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
) -> None:
    acme = make_tenant()
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("update contextforge.installation set exact_limit = 0")
    upsert(acme, [make_node("a", "fish"), make_node("b", "fish")], embeddings=[vector(1)] * 2)

    def write(is_update: bool) -> None:
        if is_update:
            upsert(acme, [make_node("a", "secret", acl=["staff"])], embeddings=[vector(0, 1)])
        else:
            with searching(database, acme) as connection:
                delete_nodes(connection, acme, external_ids=["b"])

    with ThreadPoolExecutor(2) as pool:
        with searching(database, acme) as refresher:
            assert refresh_ann(refresher, acme) == 2
            waiting = [pool.submit(write, is_update) for is_update in (True, False)]
            wait_for_locks(database, 2)
        for done in waiting:
            done.result(timeout=10)

    with searching(database, acme) as connection:
        left = connection.exec_driver_sql("select count(*) from contextforge.ann_nodes")
        assert left.scalar_one() == 0
        assert refresh_ann(connection, acme) == 1
        assert vector_search_nodes(connection, [acme], query_embedding=vector(1)) == []
