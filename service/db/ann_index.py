"""The ANN index: what it is, how hard it searches, and another one in its place without downtime.

A new index is built beside the one in use, and both are renamed at once. No step takes a lock
that a search or a write would wait for: not even to drop what was replaced. Stored vectors have
length 1, so cosine and inner product order alike: the new index is for the operator that searches
do not use at present, and until the switch only a comparison reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from service.db.ann_progress import OnProgress, watch_build
from service.db.engine import OWNER, open_admin_engine, owner_transaction
from service.db.failures import translated_errors
from service.errors import Conflict, InvalidInput

INDEX = "idx_knowledge_nodes_embedding"
NEXT = f"{INDEX}_next"
REPLACED = f"{INDEX}_replaced"

Method = Literal["hnsw", "ivfflat"]
Operator = Literal["cosine", "inner_product"]
_OPERATOR_CLASSES: dict[Operator, str] = {
    "cosine": "halfvec_cosine_ops",
    "inner_product": "halfvec_ip_ops",
}
# Recall .99 among 180,000 rows, where an effort of 100 gave .92 (docs/decisions/0006).
_HNSW_EFFORT = 800
_MOST_EFFORT: dict[Method, int] = {"hnsw": 1000, "ivfflat": 32768}
_LEAST_ROWS_A_LIST = 10


@dataclass(frozen=True, slots=True)
class AnnIndex:
    """The index in use, how hard it searches, and up to how many rows it is not used at all."""

    method: Method
    options: str
    search_effort: int
    exact_limit: int
    rows: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class HnswOptions:
    """How an HNSW graph is built: links a node, and candidates looked at to choose them."""

    m: int = 24
    ef_construction: int = 128

    def __post_init__(self) -> None:
        if not (2 <= self.m <= 100 and 2 * self.m <= self.ef_construction <= 1000):
            raise InvalidInput(
                f"HNSW cannot be built with m {self.m} and ef_construction {self.ef_construction}.",
                hint="Use m from 2 to 100, and ef_construction from 2 m to 1000.",
            )


@dataclass(frozen=True, slots=True)
class IvfflatOptions:
    """How many lists IVFFlat cuts the vectors into; None takes the square root of the rows."""

    lists: int | None = None

    def __post_init__(self) -> None:
        if self.lists is not None and not 1 <= self.lists <= 32768:
            raise InvalidInput(f"IVFFlat takes 1 to 32768 lists, not {self.lists}.")


@dataclass(frozen=True, slots=True)
class AnnPath:
    """A way through an ANN index: its kind, the operator it orders by, and the effort."""

    method: Method
    operator: Operator
    search_effort: int


Check = Callable[[AnnPath, AnnPath], None]
"""Told the path in use and the next one before the switch; raises to keep the one in use."""


@dataclass(frozen=True, slots=True)
class _Plan:
    path: AnnPath
    storage: str


def describe_ann_index(connection: Connection) -> AnnIndex:
    """Return the index in use; the connection is the owner's."""
    row = connection.exec_driver_sql(
        f"""
        select
            i.ann_method,
            coalesce((
                select array_to_string(c.reloptions, ', ') from pg_class as c
                where c.oid = to_regclass('contextforge.{INDEX}')
            ), ''),
            i.ann_search_effort, i.exact_limit,
            (select count(*) from contextforge.ann_nodes),
            coalesce(pg_relation_size(to_regclass('contextforge.{INDEX}')), 0)
        from contextforge.installation as i
        """
    ).one()
    return AnnIndex(*row)


def read_ann_path(connection: Connection) -> AnnPath:
    """Return the path that searches take; the connection is the owner's."""
    row = connection.exec_driver_sql(
        "select ann_method, ann_operator, ann_search_effort from contextforge.installation"
    ).one()
    return AnnPath(*row)


def tune_ann_index(
    connection: Connection, *, search_effort: int | None = None, exact_limit: int | None = None
) -> None:
    """Set how hard the index searches (ef_search or probes), and where exact search ends."""
    if search_effort is not None:
        check_effort(read_ann_path(connection).method, search_effort)
    if exact_limit is not None and not 0 <= exact_limit < 2**31:
        raise InvalidInput(f"The exact limit cannot be {exact_limit}.")
    connection.exec_driver_sql(
        "update contextforge.installation set"
        " ann_search_effort = coalesce(%s, ann_search_effort),"
        " exact_limit = coalesce(%s, exact_limit)",
        (search_effort, exact_limit),
    )


def build_ann_index(
    engine: Engine,
    options: HnswOptions | IvfflatOptions,
    *,
    search_effort: int | None = None,
    on_progress: OnProgress | None = None,
    check: Check | None = None,
) -> None:
    """Build an index beside the one in use, then put it in its place; searches go on meanwhile.

    Where the check refuses it, it is kept: the same build goes on from there, abort drops it.
    """
    with owner_transaction(engine) as connection:
        used = read_ann_path(connection)
        rows = describe_ann_index(connection).rows
        plan = _make_plan(options, rows, used=used, search_effort=search_effort)
    with translated_errors(), _building_session(engine) as session:
        if not _is_built(session, plan):
            _drop_leftovers(session)
            with watch_build(engine.url, session, on_progress):
                _build_next(session, plan)
        if check is not None:
            check(used, plan.path)
        with owner_transaction(engine) as connection:
            _switch(connection, plan.path)
        _drop_leftovers(session)


def abort_ann_index(engine: Engine) -> bool:
    """Drop an index that was built and not switched to; False if there was none."""
    with translated_errors(), _building_session(engine) as session:
        known = session.exec_driver_sql(f"select to_regclass('contextforge.{NEXT}')").scalar()
        _drop_leftovers(session)
    return known is not None


def _make_plan(
    options: HnswOptions | IvfflatOptions, rows: int, *, used: AnnPath, search_effort: int | None
) -> _Plan:
    operator: Operator = "inner_product" if used.operator == "cosine" else "cosine"
    if isinstance(options, HnswOptions):
        storage = f"m={options.m}, ef_construction={options.ef_construction}"
        effort = _HNSW_EFFORT if search_effort is None else search_effort
        path = AnnPath("hnsw", operator, effort)
    else:
        lists = max(1, math.isqrt(rows)) if options.lists is None else options.lists
        _require_rows(rows, lists)
        storage = f"lists={lists}"
        # Iterative scans look at more lists where the filters ask for it.
        probes = max(math.isqrt(lists), lists // 10)
        path = AnnPath("ivfflat", operator, probes if search_effort is None else search_effort)
    check_effort(path.method, path.search_effort)
    return _Plan(path, storage)


def _require_rows(rows: int, lists: int) -> None:
    if rows < lists * _LEAST_ROWS_A_LIST:
        raise Conflict(
            f"IVFFlat learns its lists from the vectors: {lists} lists need at least "
            f"{lists * _LEAST_ROWS_A_LIST} vectors in the index, and there are {rows}.",
            hint="Ingest first, then run contextforge maintain: it indexes the tenants that have "
            "more nodes than the exact limit.",
        )


def check_effort(method: Method, effort: int) -> None:
    """Refuse an ef_search or a number of probes that pgvector does not take."""
    if not 1 <= effort <= _MOST_EFFORT[method]:
        name = "ef_search" if method == "hnsw" else "probes"
        raise InvalidInput(f"{name} is from 1 to {_MOST_EFFORT[method]}, not {effort}.")


@contextmanager
def _building_session(engine: Engine) -> Iterator[Connection]:
    """Open a connection of its own as the owner: no pool may get back what is set for a session."""
    own = open_admin_engine(engine.url.render_as_string(hide_password=False))
    try:
        with own.connect().execution_options(isolation_level="AUTOCOMMIT") as session:
            session.exec_driver_sql(f"set role {OWNER}")
            session.exec_driver_sql("set statement_timeout = 0")
            lock = "select pg_try_advisory_lock(hashtextextended('contextforge ann index', 0))"
            if not session.exec_driver_sql(lock).scalar_one():
                raise Conflict(
                    "Another process is building the ANN index.", hint="Wait until it is done."
                )
            yield session
    finally:
        own.dispose()


def _drop_leftovers(session: Connection) -> None:
    for name in (NEXT, REPLACED):
        session.exec_driver_sql(f"drop index concurrently if exists contextforge.{name}")


def _is_built(session: Connection, plan: _Plan) -> bool:
    """Whether this very index is there already, whole, from a build that was refused."""
    return bool(
        session.exec_driver_sql(
            "select true from pg_index as i join pg_class as c on c.oid = i.indexrelid"
            " join pg_am as a on a.oid = c.relam"
            " join pg_opclass as o on o.oid = i.indclass[0]"
            " where i.indexrelid = to_regclass(%s) and i.indisvalid and a.amname = %s"
            " and o.opcname = %s and array_to_string(c.reloptions, ', ') = %s",
            (
                f"contextforge.{NEXT}",
                plan.path.method,
                _OPERATOR_CLASSES[plan.path.operator],
                plan.storage,
            ),
        ).scalar()
    )


def _build_next(session: Connection, plan: _Plan) -> None:
    session.exec_driver_sql(f"set maintenance_work_mem = '{_choose_memory(session)}MB'")
    try:
        session.exec_driver_sql(
            f"create index concurrently {NEXT} on contextforge.ann_nodes"
            f" using {plan.path.method} (embedding {_OPERATOR_CLASSES[plan.path.operator]})"
            f" with ({plan.storage})"
        )
    except DBAPIError:
        # What is left of a failed build is kept up to date by every write, and of no use.
        with suppress(DBAPIError):
            _drop_leftovers(session)
        raise


def _choose_memory(session: Connection) -> int:
    """Twice the vectors up to 1 GB: a parallel build takes all it may from shared memory."""
    size = session.exec_driver_sql("select pg_table_size('contextforge.ann_nodes')").scalar_one()
    return max(64, min(1024, 2 * int(size) // 2**20))


def _switch(connection: Connection, path: AnnPath) -> None:
    connection.exec_driver_sql(f"alter index if exists contextforge.{INDEX} rename to {REPLACED}")
    connection.exec_driver_sql(f"alter index contextforge.{NEXT} rename to {INDEX}")
    connection.exec_driver_sql(
        "update contextforge.installation"
        " set ann_method = %s, ann_operator = %s, ann_search_effort = %s",
        (path.method, path.operator, path.search_effort),
    )
