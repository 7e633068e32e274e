"""One job from start to end: what its kind does, how far it is, and what came of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.jobs import (
    StartedJob,
    end_job,
    job_tenant,
    read_job_document,
    report_job_progress,
    return_job,
    start_job,
    worker_transaction,
)
from service.db.queue import JobReturned, StopReason, Turn
from service.embedding import Embedder
from service.errors import DatabaseUnavailable, InvalidInput, ServiceError
from service.types import InlineDocument, JobError, JobState, Json

if TYPE_CHECKING:
    from service.ingestion.fetch import Fetcher

PROGRESS_SECONDS = 1.0
# What a tenant is told of a fault of ours; the log has the rest.
_FAULT = JobError("internal", "The work failed because of a fault in the service.")

_log = logging.getLogger(__name__)


class LoadEmbedder(Protocol):
    """Finds an embedder by its model, or the one of the settings."""

    def __call__(self, model: str | None = None) -> Embedder: ...


class _Cancelled(Exception):
    """The tenant cancelled the job while it ran."""


@dataclass(slots=True)
class Work:
    """A running job as its kind sees it."""

    engine: Engine
    job: StartedJob
    load_embedder: LoadEmbedder
    why_stop: Callable[[], StopReason | None]
    fetcher: Fetcher | None = None
    done: int = 0
    total: int | None = None
    _written_at: float = field(default_factory=time.monotonic)

    @property
    def tenant_id(self) -> str:
        """Whose job it is."""
        return self.job.tenant_id

    @property
    def arguments(self) -> Mapping[str, Json]:
        """What was given when it was queued."""
        return self.job.arguments

    def check(self) -> None:
        """End here if the job was cancelled or the worker stops; for places where that is safe."""
        reason = self.why_stop()
        if reason == "cancelled":
            raise _Cancelled
        if reason == "returned":
            raise JobReturned

    def report(self, done: int, total: int | None) -> None:
        """Say how far the work is; written once a second at most."""
        self.check()
        self.done, self.total = done, total
        if time.monotonic() - self._written_at < PROGRESS_SECONDS:
            return
        self._written_at = time.monotonic()
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            self.write_progress(connection)

    def write_progress(self, connection: Connection) -> None:
        """Store how far the work is."""
        report_job_progress(connection, self.job, done=self.done, total=self.total)

    def read_documents(self) -> Iterator[InlineDocument]:
        """The documents that came with the job, one at a time."""
        for place, name in enumerate(self.job.document_names, start=1):
            self.check()
            with tenant_transaction(self.engine, [self.tenant_id]) as connection:
                content = read_job_document(connection, self.job, place=place)
            yield InlineDocument(name, content)


Kind = Callable[[Work], Mapping[str, Json]]
"""What a kind of job does; returns its result."""


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Runs jobs of the given kinds for whichever tenant they belong to."""

    engine: Engine
    kinds: Mapping[str, Kind]
    load_embedder: LoadEmbedder
    fetcher: Fetcher | None = None

    def run(self, turn: Turn) -> None:
        """Work on a job; raises only what sends it back to the queue."""
        with worker_transaction(self.engine) as connection:
            tenant_id = job_tenant(connection, turn.job_id)
        if tenant_id is None:  # it went with its tenant
            return
        with tenant_transaction(self.engine, [tenant_id]) as connection:
            job = start_job(connection, tenant_id, job_id=turn.job_id)
        if job is None:  # cancelled, or ended by a worker that died before it said so
            return
        _log.info("job %s (%s of %s) starts", job.job_id, job.kind, tenant_id)
        work = Work(self.engine, job, self.load_embedder, turn.why_stop, self.fetcher)
        self._run_started(work, turn)

    def _run_started(self, work: Work, turn: Turn) -> None:
        try:
            result = self._find_kind(work.job.kind)(work)
            self._end(work, "succeeded", result=result)
        except _Cancelled:
            self._end(work, "cancelled")
        except JobReturned:
            self._return(work)
            raise
        except DatabaseUnavailable as exc:
            if not turn.is_last_attempt:
                self._return(work)
                raise
            self._end(work, "failed", error=_describe(exc))
        except ServiceError as exc:
            self._end(work, "failed", error=_describe(exc))
        except Exception:  # noqa: BLE001 (logged; other jobs must go on)
            _log.exception("job %s failed", work.job.job_id)
            self._end(work, "failed", error=_FAULT)

    def _find_kind(self, name: str) -> Kind:
        if name not in self.kinds:
            raise InvalidInput(
                f'This worker does not know work of the kind "{name}".',
                hint="Is it as new as what queued the job?",
            )
        return self.kinds[name]

    def _end(
        self,
        work: Work,
        state: JobState,
        *,
        result: Mapping[str, Json] | None = None,
        error: JobError | None = None,
    ) -> None:
        with tenant_transaction(self.engine, [work.tenant_id]) as connection:
            work.write_progress(connection)
            end_job(
                connection,
                work.job,
                state=state,
                result=None if result is None else _clean_items(result),
                error=error,
            )
        _log.info("job %s %s%s", work.job.job_id, state, f": {error.message}" if error else "")

    def _return(self, work: Work) -> None:
        _log.info("job %s goes back to the queue", work.job.job_id)
        # Where the database is out of reach, whoever settles the queue does it.
        with (
            suppress(ServiceError),
            tenant_transaction(self.engine, [work.tenant_id]) as connection,
        ):
            return_job(connection, work.job)


def _describe(exc: ServiceError) -> JobError:
    hint = None if exc.hint is None else _clean_text(exc.hint)
    return JobError(exc.code, _clean_text(exc.message), hint)


def _clean_items(items: Mapping[str, Json]) -> dict[str, Json]:
    return {key: _clean(value) for key, value in items.items()}


def _clean(value: Json) -> Json:
    """The value with what PostgreSQL's json cannot hold replaced: file names may be anything."""
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, Mapping):
        return _clean_items(value)
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value


def _clean_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
