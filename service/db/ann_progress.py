"""How far the build of an index is, told from a connection beside the one that builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError

from service.db.engine import open_admin_engine

OnProgress = Callable[[float], None]
_SECONDS_BETWEEN = 0.5


@contextmanager
def watch_build(url: URL, builder: Connection, on_progress: OnProgress | None) -> Iterator[None]:
    """Report the share of rows indexed by the builder's session, from 0 to 1, in the body."""
    if on_progress is None:
        yield
        return
    pid = builder.exec_driver_sql("select pg_backend_pid()").scalar_one()
    done = Event()
    watcher = Thread(target=_watch, args=(url, pid, on_progress, done), daemon=True)
    watcher.start()
    try:
        yield
        on_progress(1.0)
    finally:
        done.set()
        watcher.join()


def _watch(url: URL, pid: int, on_progress: OnProgress, done: Event) -> None:
    engine = open_admin_engine(url.render_as_string(hide_password=False))
    # A build does not fail because nobody can watch it.
    with suppress(DBAPIError), engine.connect() as connection:
        while not done.wait(_SECONDS_BETWEEN):
            share = _read_share(connection, pid)
            connection.rollback()  # the build would wait for a snapshot kept open
            on_progress(share)
    engine.dispose()


def _read_share(connection: Connection, pid: int) -> float:
    share = connection.exec_driver_sql(
        "select max(greatest(tuples_done::float / nullif(tuples_total, 0),"
        " blocks_done::float / nullif(blocks_total, 0)))"
        " from pg_stat_progress_create_index where pid = %s",
        (pid,),
    ).scalar()
    return min(1.0, float(share or 0))
