"""The statements of one request: limited in time, and stopped when nobody waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from service.errors import DeadlineExceeded, ServiceError

CANCEL_SECONDS = 2.0
_CURRENT: ContextVar[StatementGuard | None] = ContextVar("statement_guard", default=None)


class StatementGuard:
    """What one request may still ask of the database; safe to stop from another thread."""

    def __init__(self, *, statement_seconds: float, request_seconds: float) -> None:
        self._statement_seconds = statement_seconds
        self._request_seconds = request_seconds
        self._end = time.monotonic() + request_seconds
        self._lock = Lock()
        self._running: set[psycopg.Connection[Any]] = set()
        self._reason: ServiceError | None = None

    def stop(self, reason: ServiceError) -> None:
        """Cancel the statement that runs now, and refuse whatever would follow."""
        with self._lock:  # a connection cannot go back to the pool while it is cancelled
            self._reason = self._reason or reason
            for connection in self._running:
                connection.cancel_safe(timeout=CANCEL_SECONDS)

    @contextmanager
    def watch(self, connection: Connection) -> Iterator[None]:
        """Limit the statements of a transaction that has just begun."""
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        self._add(driver)
        try:
            connection.exec_driver_sql(f"set local statement_timeout = {self._find_limit()}")
            yield
        except DBAPIError as exc:
            if self._reason is not None:
                raise self._reason from exc
            raise
        finally:
            with self._lock:
                self._running.discard(driver)
            if self._reason is not None:
                # The cancellation may arrive late, and must not meet another request.
                connection.invalidate()
        self._check()

    def _add(self, driver: psycopg.Connection[Any]) -> None:
        with self._lock:
            self._check()
            self._running.add(driver)

    def _check(self) -> None:
        if self._reason is not None:
            raise self._reason

    def _find_limit(self) -> int:
        """Return the milliseconds a statement may take from now on."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(f"The request took longer than {self._request_seconds:g} s.")
        return max(1, int(min(left, self._statement_seconds) * 1000))


@contextmanager
def guarded(guard: StatementGuard) -> Iterator[None]:
    """Let the guard watch every transaction that begins in this context."""
    token = _CURRENT.set(guard)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def watched(connection: Connection) -> Iterator[None]:
    """Run a transaction under the guard of its context, if there is one."""
    guard = _CURRENT.get()
    if guard is None:
        yield
        return
    with guard.watch(connection):
        yield
