"""The queue in the database: procrastinate fetches, this hands each job on and keeps order."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any, Literal, LiteralString

import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as QueueRow
from psycopg.rows import DictRow
from sqlalchemy import Engine

from service.db.engine import plain_transaction
from service.db.failures import translated_errors
from service.db.jobs import WORKER, settle_jobs, worker_transaction
from service.db.migrate import QUEUE_SCHEMA
from service.errors import DatabaseUnavailable, Forbidden, ServiceError

QUEUE = "contextforge"
TASK = "run_job"
# Nothing notifies (migration 0007 says why), so this is how long new work may wait.
POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
# A worker that was silent for so long is taken for dead, and its jobs go to others.
SILENCE_SECONDS = 30.0
SETTLE_SECONDS = 10.0
# A job that does not end by itself in this time after a signal goes back to the queue.
GRACE_SECONDS = 5.0
MAX_ATTEMPTS = 10
LONGEST_WAIT_SECONDS = 300
# Beside the jobs, name lookups and settling need a thread now and then.
SPARE_THREADS = 4

StopReason = Literal["cancelled", "returned"]

_ACT_AS_WORKER: LiteralString = (
    f"set local role {WORKER}; set local search_path = {QUEUE_SCHEMA}, pg_catalog"
)
_log = logging.getLogger(__name__)


class JobReturned(Exception):
    """The worker stops: the job goes back to the queue."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A job that is to be worked on now; it may be asked to stop at any time."""

    job_id: str
    is_last_attempt: bool
    why_stop: Callable[[], StopReason | None]


class _Retry(BaseRetryStrategy):
    """Again at once after a stop of the worker, later after an outage, never after an error."""

    def get_retry_decision(
        self, *, exception: BaseException, job: QueueRow
    ) -> RetryDecision | None:
        if isinstance(exception, JobReturned):
            return RetryDecision(retry_in={"seconds": 0})
        if isinstance(exception, DatabaseUnavailable) and not _is_last(job):
            wait = min(2 ** (job.attempts + 1), LONGEST_WAIT_SECONDS)
            return RetryDecision(retry_in={"seconds": wait})
        return None


class _WorkerConnector(PsycopgConnector):
    """Acts as the worker for one transaction at a time: a SET that stays would leak in a pool."""

    @asynccontextmanager
    async def _get_cursor(
        self, connection: psycopg.AsyncConnection[Any] | None = None
    ) -> AsyncGenerator[psycopg.AsyncCursor[DictRow]]:
        async with super()._get_cursor(connection) as cursor:
            await cursor.execute(_ACT_AS_WORKER)
            yield cursor


@dataclass(slots=True)
class QueueWorker:
    """Works on queued jobs, several at a time if so asked, each in a thread of its own."""

    engine: Engine
    url: str = field(repr=False)
    work: Callable[[Turn], None]
    concurrency: int = 1
    _turns: int = 0
    _stopping: bool = False
    _returning: Event = field(default_factory=Event)

    def run(self, *, once: bool = False) -> None:
        """Work until a signal comes, or until the queue is empty; jobs in hand are not lost."""
        _require_worker_role(self.engine)
        with translated_errors():
            try:
                asyncio.run(self._run(once=once))
            except ConnectorException as exc:
                raise exc.__cause__ or exc from exc
        if not once and not self._stopping:
            raise DatabaseUnavailable(
                "The worker lost its database and stopped.", hint="Start it again."
            )

    async def _run(self, *, once: bool) -> None:
        executor = ThreadPoolExecutor(self.concurrency + SPARE_THREADS)
        asyncio.get_running_loop().set_default_executor(executor)
        await asyncio.to_thread(self._settle)
        app = self._build_app()
        async with app.open_async():
            work = self._work_off(app) if once else self._run_worker(app)
            working = asyncio.create_task(work)
            settling = asyncio.create_task(self._keep_settling())
            with self._stopped_by_signals(working), suppress(asyncio.CancelledError):
                await working
            settling.cancel()

    async def _work_off(self, app: App) -> None:
        """Run until there was nothing to do: a job may wait for one that ran beside the last."""
        turns = -1
        while turns != self._turns:
            turns = self._turns
            await self._run_worker(app, wait=False)

    async def _run_worker(self, app: App, *, wait: bool = True) -> None:
        await app.run_worker_async(
            queues=[QUEUE],
            concurrency=self.concurrency,
            wait=wait,
            fetch_job_polling_interval=POLL_SECONDS,
            abort_job_polling_interval=POLL_SECONDS,
            listen_notify=False,
            delete_jobs="always",  # what became of a job stands in contextforge.jobs
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=SILENCE_SECONDS,
        )

    def _build_app(self) -> App:
        connector = _WorkerConnector(
            conninfo=self.url,
            kwargs={"application_name": "contextforge worker", "connect_timeout": 10},
            min_size=1,
            max_size=4,
        )
        app = App(connector=connector)
        app.task(name=TASK, queue=QUEUE, pass_context=True, retry=_Retry())(self._run_job)
        return app

    def _run_job(self, context: JobContext, *, job_id: str) -> None:
        def why_stop() -> StopReason | None:
            if context.should_abort():
                return "cancelled"
            return "returned" if self._returning.is_set() else None

        self._turns += 1
        self.work(Turn(job_id, _is_last(context.job), why_stop))

    async def _keep_settling(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            await asyncio.to_thread(self._settle)

    def _settle(self) -> None:
        try:
            with worker_transaction(self.engine) as connection:
                returned = settle_jobs(connection, silence=timedelta(seconds=SILENCE_SECONDS))
        except ServiceError as exc:
            _log.warning("jobs of lost workers were not looked for: %s", exc)
            return
        if returned:
            _log.warning("%d jobs of lost workers are queued again", returned)

    @contextmanager
    def _stopped_by_signals(self, working: asyncio.Task[None]) -> Iterator[None]:
        """Let a signal end the work: first no new job, after a while or a second signal no old."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if self._stopping:
                self._returning.set()
                return
            self._stopping = True
            loop.call_later(GRACE_SECONDS, self._returning.set)
            working.cancel()  # which procrastinate takes for: finish what you have

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            loop.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


def _is_last(row: QueueRow) -> bool:
    return row.attempts + 1 >= MAX_ATTEMPTS


def _require_worker_role(engine: Engine) -> None:
    with plain_transaction(engine) as connection:
        login, may = connection.exec_driver_sql(
            "select quote_ident(session_user), pg_has_role(session_user, %s, 'set')", (WORKER,)
        ).one()
    if not may:
        raise Forbidden(
            f"Login {login} may not act as {WORKER}, so it cannot work on the queue.",
            hint="Run: contextforge migrate (or, as the administrator: "
            f"grant {WORKER} to {login} with inherit false, set true)",
        )
