"""The ANN index: described, tuned, and switched between kinds while searches go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from service.db import ann_index
from service.db.ann_index import (
    INDEX,
    NEXT,
    REPLACED,
    AnnIndex,
    HnswOptions,
    IvfflatOptions,
    build_ann_index,
    describe_ann_index,
    tune_ann_index,
)
from service.db.engine import owner_transaction, tenant_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import upsert_nodes
from service.db.search import explain_hybrid_search, vector_search_nodes
from service.errors import Conflict, InvalidInput, ServiceError
from service.types import NodeDraft, Vector
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase

DIM = 16
ROWS = 3000
TENANT = "acme"
Vectors = NDArray[np.float32]


def make_clustered(count: int, *, seed: int) -> Vectors:
    """Vectors around 40 centres, as texts about 40 subjects would be."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(40, DIM))
    near = centres[random.integers(40, size=count)]
    return (near + random.normal(scale=0.4, size=(count, DIM))).astype(np.float32)


QUERIES = make_clustered(20, seed=3)


@pytest.fixture
def empty(make_database: MakeDatabase) -> LiveDatabase:
    """A database with one tenant, where every search of more than 100 rows takes the index."""
    database = make_database(embedding_dim=DIM)
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(f"select create_tenant('{TENANT}', null, 'en')")
        tune_ann_index(connection, exact_limit=100)
    return database


@pytest.fixture
def fill(empty: LiveDatabase) -> Callable[[int], LiveDatabase]:
    """fill(rows): the same database with as many indexed vectors."""

    def run(rows: int) -> LiveDatabase:
        nodes = [NodeDraft(str(number), node_type="article") for number in range(rows)]
        vectors = make_clustered(rows, seed=2)
        with tenant_transaction(empty.engine, [TENANT]) as connection:
            upsert_nodes(connection, TENANT, nodes=nodes, embeddings=list(vectors))
            assert refresh_ann(connection, TENANT, max_rows=rows) == rows
        return empty

    return run


def describe(database: LiveDatabase) -> AnnIndex:
    with owner_transaction(database.admin) as connection:
        return describe_ann_index(connection)


def list_indexes(database: LiveDatabase) -> dict[str, bool]:
    """The ANN indexes there are, and whether each is valid."""
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql(
            "select c.relname, i.indisvalid from pg_index as i"
            " join pg_class as c on c.oid = i.indexrelid join pg_am as a on a.oid = c.relam"
            " where i.indrelid = 'contextforge.ann_nodes'::regclass and a.amname <> 'btree'"
        )
        return dict(map(tuple, rows))


def search(database: LiveDatabase, query: Vector) -> list[int]:
    with tenant_transaction(database.engine, [TENANT]) as connection:
        hits = vector_search_nodes(connection, [TENANT], query_embedding=query, top_k=20)
    return [hit.node_id for hit in hits]


def find_path(database: LiveDatabase) -> str | None:
    with tenant_transaction(database.engine, [TENANT]) as connection:
        return explain_hybrid_search(connection, [TENANT], query_embedding=QUERIES[0]).vector_path


def search_all(database: LiveDatabase) -> list[set[int]]:
    return [set(search(database, query)) for query in QUERIES]


def recall(found: Sequence[set[int]], wanted: Sequence[set[int]]) -> float:
    shared = (len(a & b) / len(b) for a, b in zip(found, wanted, strict=True))
    return sum(shared) / len(wanted)


@contextmanager
def searching_meanwhile(database: LiveDatabase) -> Iterator[list[int]]:
    """Search without pause in another thread; how many hits each search had."""
    done, first = Event(), Event()
    sizes: list[int] = []

    def run() -> None:
        while not done.is_set():
            sizes.append(len(search(database, QUERIES[len(sizes) % len(QUERIES)])))
            first.set()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        try:
            assert first.wait(10)
            yield sizes
        finally:
            done.set()
        running.result(timeout=30)


def test_an_index_is_described_as_it_was_made(empty: LiveDatabase) -> None:
    found = describe(empty)

    assert (found.method, found.options) == ("hnsw", "m=24, ef_construction=128")
    assert found.search_effort == 800
    assert (found.exact_limit, found.rows) == (100, 0)
    assert found.index_bytes > 0


def test_tuning_changes_what_is_named_and_nothing_else(empty: LiveDatabase) -> None:
    with owner_transaction(empty.admin) as connection:
        tune_ann_index(connection, search_effort=250)
    assert (describe(empty).search_effort, describe(empty).exact_limit) == (250, 100)
    with owner_transaction(empty.admin) as connection:
        tune_ann_index(connection, exact_limit=0)
    assert (describe(empty).search_effort, describe(empty).exact_limit) == (250, 0)


@pytest.mark.parametrize(
    "given", [{"search_effort": 0}, {"search_effort": 1001}, {"exact_limit": -1}]
)
def test_impossible_tuning_is_refused(empty: LiveDatabase, given: dict[str, int]) -> None:
    before = describe(empty)
    with (
        pytest.raises(InvalidInput, match=str(*given.values())),
        owner_transaction(empty.admin) as connection,
    ):
        tune_ann_index(connection, **given)
    assert describe(empty) == before


def test_switching_kinds_keeps_the_name_and_the_results(fill: Callable[[int], LiveDatabase]):
    database = fill(ROWS)
    with owner_transaction(database.admin) as connection:
        tune_ann_index(connection, exact_limit=ROWS)
    exact = search_all(database)
    assert find_path(database) == "exact"
    with owner_transaction(database.admin) as connection:
        tune_ann_index(connection, exact_limit=100)
    assert find_path(database) == "hnsw"

    for options, method, storage, effort in (
        (HnswOptions(m=8, ef_construction=40), "hnsw", "m=8, ef_construction=40", 800),
        (IvfflatOptions(), "ivfflat", f"lists={math.isqrt(ROWS)}", 7),
        (IvfflatOptions(lists=20), "ivfflat", "lists=20", 4),
        (HnswOptions(), "hnsw", "m=24, ef_construction=128", 800),
    ):
        build_ann_index(database.admin, options)
        found = describe(database)
        assert (found.method, found.options, found.search_effort) == (method, storage, effort)
        assert found.rows == ROWS
        assert list_indexes(database) == {INDEX: True}
        assert find_path(database) == method
        assert recall(search_all(database), exact) >= 0.9, options


def test_the_effort_given_with_a_build_is_kept(fill: Callable[[int], LiveDatabase]) -> None:
    database = fill(400)
    build_ann_index(database.admin, IvfflatOptions(), search_effort=2000)
    assert describe(database).search_effort == 2000
    build_ann_index(database.admin, HnswOptions(), search_effort=200)
    assert describe(database).search_effort == 200


def test_searches_and_writes_go_on_during_a_build(fill: Callable[[int], LiveDatabase]) -> None:
    database = fill(ROWS)
    shares: list[float] = []
    with searching_meanwhile(database) as sizes:
        for options in (IvfflatOptions(), HnswOptions(m=24, ef_construction=200)):
            before = len(sizes)
            build_ann_index(database.admin, options, on_progress=shares.append)
            assert len(sizes) > before
            with tenant_transaction(database.engine, [TENANT]) as connection:
                node = NodeDraft("late", node_type="article", content=str(options))
                upsert_nodes(connection, TENANT, nodes=[node], embeddings=[QUERIES[0]])
    assert set(sizes) == {20}
    assert shares[-1] == 1
    assert all(0 <= share <= 1 for share in shares)


def test_a_reader_who_keeps_its_transaction_open_holds_no_search_up(
    fill: Callable[[int], LiveDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fill(400)
    switched = Event()
    switch = ann_index._switch

    def switch_and_tell(*arguments: object) -> None:
        # Begins after the new index is there, else the build itself waits for it.
        reader.execute("select count(*) from contextforge.ann_nodes")
        switch(*arguments)  # type: ignore[arg-type]
        switched.set()

    monkeypatch.setattr(ann_index, "_switch", switch_and_tell)
    with psycopg.connect(database.admin_url) as reader, ThreadPoolExecutor(1) as pool:
        build = pool.submit(build_ann_index, database.admin, IvfflatOptions())
        assert switched.wait(30)
        for query in QUERIES:
            assert len(search(database, query)) == 20
        assert not build.done()
        reader.rollback()
        build.result(timeout=30)
    assert list_indexes(database) == {INDEX: True}


def test_lists_learnt_from_nothing_are_refused_with_the_way_out(empty: LiveDatabase) -> None:
    with pytest.raises(Conflict, match=r"there are 0\. .*contextforge maintain"):
        build_ann_index(empty.admin, IvfflatOptions())
    assert describe(empty).method == "hnsw"
    assert list_indexes(empty) == {INDEX: True}


def test_more_lists_than_the_rows_can_teach_are_refused(
    fill: Callable[[int], LiveDatabase],
) -> None:
    database = fill(400)
    with pytest.raises(Conflict, match="41 lists need at least 410 vectors"):
        build_ann_index(database.admin, IvfflatOptions(lists=41))
    build_ann_index(database.admin, IvfflatOptions(lists=40))


@pytest.mark.parametrize(
    ("m", "ef_construction"), [(1, 64), (101, 400), (16, 31), (16, 1001), (-1, 64)]
)
def test_impossible_graphs_are_refused(m: int, ef_construction: int) -> None:
    with pytest.raises(InvalidInput, match=f"m {m} and ef_construction {ef_construction}"):
        HnswOptions(m=m, ef_construction=ef_construction)


@pytest.mark.parametrize("lists", [0, -3, 32769])
def test_impossible_numbers_of_lists_are_refused(lists: int) -> None:
    with pytest.raises(InvalidInput, match=f"not {lists}"):
        IvfflatOptions(lists=lists)


@pytest.mark.parametrize("effort", [0, 1001])
def test_an_impossible_effort_is_refused_before_anything_is_built(
    empty: LiveDatabase, effort: int
) -> None:
    with pytest.raises(InvalidInput, match=f"ef_search is from 1 to 1000, not {effort}"):
        build_ann_index(empty.admin, HnswOptions(m=8), search_effort=effort)
    assert describe(empty).options == "m=24, ef_construction=128"


def test_what_an_interrupted_build_left_is_cleaned_up_by_the_next(empty: LiveDatabase) -> None:
    with owner_transaction(empty.admin) as connection:
        for name in (NEXT, REPLACED):
            connection.exec_driver_sql(
                f"create index {name} on contextforge.ann_nodes"
                " using hnsw (embedding halfvec_cosine_ops)"
            )
    with empty.admin.begin() as connection:
        connection.exec_driver_sql(
            f"update pg_index set indisvalid = false where indexrelid = 'contextforge.{NEXT}'"
            "::regclass"
        )
    assert list_indexes(empty) == {INDEX: True, NEXT: False, REPLACED: True}

    build_ann_index(empty.admin, HnswOptions(m=8))

    assert list_indexes(empty) == {INDEX: True}
    assert describe(empty).options == "m=8, ef_construction=128"


def test_a_failed_build_leaves_the_index_in_use_and_nothing_beside_it(
    fill: Callable[[int], LiveDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fill(400)
    before = describe(database)
    monkeypatch.setattr(ann_index, "_choose_memory", lambda session: 1)  # too little for the lists
    monkeypatch.setattr(ann_index, "_require_rows", lambda rows, lists: None)
    with pytest.raises(ServiceError, match="memory required"):
        build_ann_index(database.admin, IvfflatOptions(lists=32768), search_effort=1)
    assert describe(database) == before
    assert list_indexes(database) == {INDEX: True}


def test_a_lost_index_is_built_anew(empty: LiveDatabase) -> None:
    with owner_transaction(empty.admin) as connection:
        connection.exec_driver_sql(f"drop index contextforge.{INDEX}")
    assert describe(empty).index_bytes == 0
    build_ann_index(empty.admin, HnswOptions())
    assert list_indexes(empty) == {INDEX: True}


def test_of_two_builds_at_once_the_second_is_refused(empty: LiveDatabase) -> None:
    with psycopg.connect(empty.admin_url, autocommit=True) as other:
        other.execute("select pg_advisory_lock(hashtextextended('contextforge ann index', 0))")
        with pytest.raises(Conflict, match="Another process"):
            build_ann_index(empty.admin, HnswOptions())
    build_ann_index(empty.admin, HnswOptions())


def test_the_pool_keeps_neither_role_nor_settings_of_a_build(empty: LiveDatabase) -> None:
    asked = "select current_user, current_setting('maintenance_work_mem'), pg_backend_pid()"
    with empty.admin.begin() as connection:
        before = tuple(connection.exec_driver_sql(asked).one())
    build_ann_index(empty.admin, HnswOptions())
    with pytest.raises(Conflict):
        build_ann_index(empty.admin, IvfflatOptions())
    with empty.admin.begin() as connection:
        assert tuple(connection.exec_driver_sql(asked).one()) == before
    assert before[0] == "postgres"


def test_the_new_index_belongs_to_the_owner_of_the_schema(empty: LiveDatabase) -> None:
    build_ann_index(empty.admin, HnswOptions())
    with empty.admin.begin() as connection:
        owner = connection.exec_driver_sql(
            f"select pg_get_userbyid(relowner) from pg_class where relname = '{INDEX}'"
        )
        assert owner.scalar_one() == "contextforge_owner"
