"""Jobs: one Python function per SQL function, of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import Connection, Engine

from service.db.engine import plain_transaction
from service.types import InlineDocument, Job, JobError, JobState, Json

WORKER = "contextforge_worker"


@dataclass(frozen=True, slots=True)
class StartedJob:
    """What a job works on, for the worker that has it."""

    job_id: str
    tenant_id: str
    kind: str
    arguments: Mapping[str, Json]
    document_names: tuple[str, ...]


@contextmanager
def worker_transaction(engine: Engine) -> Iterator[Connection]:
    """Run one transaction as the worker, which sees the queue and whose jobs are on it."""
    with plain_transaction(engine) as connection:
        connection.exec_driver_sql(f"set local role {WORKER}")
        yield connection


# --- what a tenant may ask ------------------------------------------------------------------------


def enqueue_job(
    connection: Connection,
    tenant_id: str,
    *,
    kind: str,
    arguments: Mapping[str, Json],
    order_key: str | None = None,
    documents: Sequence[InlineDocument] = (),
) -> str:
    """Queue work of a tenant; return the id of the job."""
    job_id = connection.exec_driver_sql(
        "select public.enqueue_job(%s, %s, %s, %s, %s::text[], %b::bytea[])",
        (
            tenant_id,
            kind,
            Jsonb(arguments),
            order_key,
            [document.name for document in documents],
            [document.content for document in documents],
        ),
    ).scalar_one()
    return str(job_id)


def find_jobs(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    job_id: str | None = None,
    max_rows: int = 100,
) -> list[Job]:
    """Return the jobs of these tenants, newest first, or the one of this id."""
    rows = connection.exec_driver_sql(
        "select job_id::text, tenant_id, kind, state, progress_done, progress_total, result, error,"
        " created_at, started_at, finished_at from public.find_jobs(%s, %s::uuid, %s)",
        (list(tenant_ids), job_id, max_rows),
    )
    return [_read_job(**row) for row in rows.mappings()]


def cancel_job(connection: Connection, tenant_id: str, *, job_id: str) -> JobState:
    """Take a job off the queue, or ask its worker to stop; return the state it has now."""
    state: JobState = connection.exec_driver_sql(
        "select public.cancel_job(%s, %s::uuid)", (tenant_id, job_id)
    ).scalar_one()
    return state


def retry_job(connection: Connection, tenant_id: str, *, job_id: str) -> None:
    """Queue a job that failed or was cancelled once more."""
    connection.exec_driver_sql("select public.retry_job(%s, %s::uuid)", (tenant_id, job_id))


# --- what a worker does for a tenant --------------------------------------------------------------


def start_job(connection: Connection, tenant_id: str, *, job_id: str) -> StartedJob | None:
    """Mark a job as running; None if it has ended or was cancelled."""
    row = connection.exec_driver_sql(
        "select kind, arguments, document_names from contextforge.start_job(%s, %s::uuid)",
        (tenant_id, job_id),
    ).one_or_none()
    if row is None:
        return None
    kind, arguments, names = row
    return StartedJob(job_id, tenant_id, kind, arguments, tuple(names))


def read_job_document(connection: Connection, job: StartedJob, *, place: int) -> bytes:
    """Return the bytes of a document the job came with, by its place from 1 on."""
    content = connection.exec_driver_sql(
        "select contextforge.read_job_document(%s, %s::uuid, %s)",
        (job.tenant_id, job.job_id, place),
    ).scalar_one()
    return bytes(content)


def report_job_progress(
    connection: Connection, job: StartedJob, *, done: int, total: int | None
) -> None:
    """Say how far a running job is."""
    connection.exec_driver_sql(
        "select contextforge.report_job_progress(%s, %s::uuid, %s, %s)",
        (job.tenant_id, job.job_id, done, total),
    )


def return_job(connection: Connection, job: StartedJob) -> None:
    """Mark a running job as queued again."""
    connection.exec_driver_sql(
        "select contextforge.return_job(%s, %s::uuid)", (job.tenant_id, job.job_id)
    )


def end_job(
    connection: Connection,
    job: StartedJob,
    *,
    state: JobState,
    result: Mapping[str, Json] | None = None,
    error: JobError | None = None,
) -> bool:
    """End a job and remove its documents; False if it had ended before."""
    ended = connection.exec_driver_sql(
        "select contextforge.end_job(%s, %s::uuid, %s, %s, %s)",
        (
            job.tenant_id,
            job.job_id,
            state,
            None if result is None else Jsonb(result),
            None if error is None else Jsonb(asdict(error)),
        ),
    ).scalar_one()
    return bool(ended)


# --- what a worker does for the queue, in a worker's transaction ----------------------------------


def job_tenant(connection: Connection, job_id: str) -> str | None:
    """Return whose job that is; None if it is gone."""
    tenant_id: str | None = connection.exec_driver_sql(
        "select contextforge.job_tenant(%s::uuid)", (job_id,)
    ).scalar_one()
    return tenant_id


def settle_jobs(connection: Connection, *, silence: timedelta) -> int:
    """Put back jobs whose worker was silent for so long; return how many."""
    returned = connection.exec_driver_sql(
        "select contextforge.settle_jobs(%s)", (silence,)
    ).scalar_one()
    return int(returned)


# --- upkeep, on the owner's connection ------------------------------------------------------------


def prune_jobs(connection: Connection, tenant_id: str, *, older_than: timedelta) -> int:
    """Forget a tenant's jobs that ended longer ago than that; return how many."""
    pruned = connection.exec_driver_sql(
        "select contextforge.prune_jobs(%s, %s)", (tenant_id, older_than)
    ).scalar_one()
    return int(pruned)


def _read_job(*, error: Mapping[str, str] | None, **columns: Any) -> Job:
    return Job(**columns, error=None if error is None else JobError(**error))
