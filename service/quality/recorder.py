"""Rows that are written beside the requests: one thread, a bounded queue, a batch a tenant."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.errors import DatabaseUnavailable

MOST_WAITING = 10_000
MOST_IN_BATCH = 500
FLUSH_SECONDS = 0.2
# How long a reader waits for what another process may not have written yet.
WAIT_SECONDS = 0.25
DRAIN_SECONDS = 5.0

logger = logging.getLogger(__name__)

Row = TypeVar("Row")
Write = Callable[[Connection, str, Sequence[Any]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A row of a tenant, and what writes rows of its kind."""

    tenant_id: str
    write: Write
    row: object


class Recorder:
    """Writes rows in the background; a row it cannot keep is lost and counted, never waited for.

    `submit(tenant_id, write, row)` returns at once. A moment later the recorder's own thread calls
    `write(connection, tenant_id, rows)` with every row that waits for this tenant and this `write`
    (a module-level function or one bound method kept by the caller: rows are grouped by it), in one
    transaction of that tenant with synchronous_commit off. `write` may read and search as well,
    such as a recall audit that repeats a search exactly, but whatever takes long keeps others
    waiting: sample, and limit the statements' time.

    engine: of the recorder alone, so that it never takes a connection from a request.
    on_lost: told how many rows were lost, from whichever thread notices.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        on_lost: Callable[[int], None],
        most_waiting: int = MOST_WAITING,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._engine = engine
        self._on_lost = on_lost
        self._most_waiting = most_waiting
        self._flush_seconds = flush_seconds
        self._waiting: deque[Task] = deque()
        self._changed = Condition()
        self._submitted = 0
        self._settled = 0
        self._wanted = 0
        self._closing = False
        self._thread: Thread | None = None

    def submit(
        self, tenant_id: str, write: Callable[[Connection, str, Sequence[Row]], None], row: Row
    ) -> bool:
        """Take a row to write; False where it is lost at once, because too many wait."""
        with self._changed:
            taken = not self._closing and len(self._waiting) < self._most_waiting
            if taken:
                self._waiting.append(Task(tenant_id, write, row))
                self._submitted += 1
                self._start()
                if len(self._waiting) in (1, MOST_IN_BATCH):
                    self._changed.notify_all()
        if not taken:
            self._on_lost(1)
        return taken

    def flush(self, *, seconds: float = WAIT_SECONDS) -> bool:
        """Wait until what was submitted so far is written or lost; False if that takes longer."""
        with self._changed:
            target = self._submitted
            if self._settled >= target:
                return True
            self._wanted = target
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target, seconds)

    def wait_for_others(self) -> None:
        """Wait as long as another process may take to write what it has taken."""
        time.sleep(WAIT_SECONDS)

    def close(self) -> None:
        """Write what waits, for a few seconds at most, and take no more."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(DRAIN_SECONDS)
        with self._changed:
            left = self._submitted - self._settled
            self._waiting.clear()
        if left:
            self._on_lost(left)

    def _start(self) -> None:
        # With the first row and not before: a process that forks must not leave the thread behind.
        if self._thread is None:
            self._thread = Thread(target=self._run, name="recorder", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while batch := self._gather():
            for (tenant_id, write), rows in _group(batch).items():
                lost = self._write(tenant_id, write, rows)
                if lost:
                    self._on_lost(lost)
            with self._changed:
                self._settled += len(batch)
                self._changed.notify_all()

    def _gather(self) -> list[Task]:
        """Wait for rows and a moment longer for more of them; nothing once all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(self._is_due, self._flush_seconds)
            taken = min(len(self._waiting), MOST_IN_BATCH)
            return [self._waiting.popleft() for _ in range(taken)]

    def _is_due(self) -> bool:
        hurried = self._settled < self._wanted
        return hurried or self._closing or len(self._waiting) >= MOST_IN_BATCH

    def _write(self, tenant_id: str, write: Write, rows: Sequence[object]) -> int:
        """Write rows of one kind; return how many could not be."""
        try:
            self._write_together(tenant_id, write, rows)
        except DatabaseUnavailable as exc:
            logger.warning("%s rows of tenant %s are lost: %s", len(rows), tenant_id, exc)
            return len(rows)
        except Exception:
            if len(rows) == 1:
                # The thread goes on for everybody else, whatever is wrong with this one.
                logger.exception("A row of tenant %s is lost.", tenant_id)
                return 1
            return sum(self._write(tenant_id, write, [row]) for row in rows)
        return 0

    def _write_together(self, tenant_id: str, write: Write, rows: Sequence[object]) -> None:
        with tenant_transaction(self._engine, [tenant_id]) as connection:
            # The last second may be lost in a crash, which is worth its speed.
            connection.exec_driver_sql("set local synchronous_commit = off")
            write(connection, tenant_id, rows)


def _group(batch: Sequence[Task]) -> dict[tuple[str, Write], list[object]]:
    groups: dict[tuple[str, Write], list[object]] = {}
    for task in batch:
        groups.setdefault((task.tenant_id, task.write), []).append(task.row)
    return groups
