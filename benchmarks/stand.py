"""The measuring stand: a server of its own with production settings, filled tenants, timings."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from rich.progress import Progress, track
from sqlalchemy import Connection, Engine

from benchmarks.corpus import DIMENSION, Corpus
from service.db.embedded import EmbeddedServer
from service.db.engine import open_admin_engine, open_engine, owner_transaction, tenant_transaction
from service.db.maintenance import merge_segments, refresh_ann
from service.db.migrate import ensure_service_login, migrate
from service.db.nodes import upsert_nodes

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Stand:
    """One migrated database: an engine for administration, one for the service."""

    admin: Engine
    engine: Engine


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of repeated calls."""

    p50: float
    p95: float
    calls: int


@contextmanager
def open_stand(*, dimension: int = DIMENSION) -> Iterator[Stand]:
    """Start a durable server in a directory of its own; remove it afterwards."""
    place = Path(tempfile.mkdtemp(prefix="cf-bench-"))
    place.chmod(0o755)
    options = {"shared_buffers": "2GB", "max_wal_size": "8GB"}
    try:
        with EmbeddedServer(place, options=options) as server:
            admin = open_admin_engine(server.admin_url())
            migrate(admin, embedding_dim=dimension)
            service_url = server.url("contextforge_service", "postgres")
            ensure_service_login(admin, service_url)
            engine = open_engine(service_url)
            yield Stand(admin, engine)
            engine.dispose()
            admin.dispose()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def create_tenant(stand: Stand, tenant: str) -> None:
    """Make an empty tenant."""
    with owner_transaction(stand.admin) as connection:
        connection.exec_driver_sql("select create_tenant(%s)", (tenant,))


def fill_tenant(
    stand: Stand,
    tenant: str,
    *,
    corpus: Corpus,
    count: int,
    first: int = 0,
    vectors: bool = True,
    quiet: bool = False,
) -> None:
    """Make a tenant with so many documents, merge its segments and index its vectors."""
    create_tenant(stand, tenant)
    starts = range(first, first + count, BATCH)
    for start in track(starts, description=f"load {tenant}", disable=quiet, transient=True):
        size = min(BATCH, first + count - start)
        with tenant_transaction(stand.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=corpus.drafts(start, size),
                embeddings=list(corpus.embeddings(start, size)) if vectors else None,
            )
    with tenant_transaction(stand.engine, [tenant]) as connection:
        merge_segments(connection, tenant, everything=True)
    index_vectors(stand, tenant, quiet=quiet)


def index_vectors(stand: Stand, tenant: str, *, quiet: bool = False) -> None:
    """Put a tenant beyond the exact limit under the ANN index, as contextforge maintain does."""
    moved = True
    with Progress(disable=quiet, transient=True) as progress:
        bar = progress.add_task(f"index {tenant}", total=None)
        while moved:
            with tenant_transaction(stand.engine, [tenant]) as connection:
                moved = bool(refresh_ann(connection, tenant))
            progress.advance(bar, 5000)


def vacuum(stand: Stand) -> None:
    """Leave the tables as autovacuum would after a while."""
    with stand.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("vacuum analyze")


def time_calls(calls: Sequence[Callable[[], object]], *, warm_up: int = 10) -> Latency:
    """Run each call once, after some to warm up."""
    for call in calls[:warm_up]:
        call()
    taken = []
    for call in calls:
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1000)
    return Latency(round(median(taken), 3), round(quantiles(taken, n=20)[-1], 3), len(taken))


def time_queries(
    connection: Connection, statement: str, arguments: Sequence[tuple[object, ...]]
) -> Latency:
    """Time one statement with each set of arguments."""

    def call(values: tuple[object, ...]) -> Callable[[], object]:
        return lambda: connection.exec_driver_sql(statement, values).all()

    return time_calls([call(values) for values in arguments])
