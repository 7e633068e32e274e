"""contextforge jobs: list, show, cancel, retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import AsJson, print_json, print_rows

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.types import Job

jobs = typer.Typer(help="Queued work: see it, cancel it, try it again.", no_args_is_help=True)

TenantOption = Annotated[str, typer.Option("--tenant", help="Whose job it is.")]
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="As --queue printed it.")]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as a line of a table."""

    job_id: str
    kind: str
    state: str
    progress: str
    created_at: datetime
    error: str | None


@jobs.command("list")
def list_jobs(
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="Whose jobs.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List a tenant's jobs, newest first."""
    from service.ingestion import jobs as queued

    with _open_engine() as engine:
        found = queued.list_jobs(engine, [tenant], max_rows=limit)
    if as_json:
        print_json([asdict(job) for job in found])
        return
    print_rows([_make_row(job) for job in found], JobRow, as_json=False)


@jobs.command("show")
def show_job(
    job_id: JobId,
    *,
    tenant: TenantOption,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until it has ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a job: its state, progress, result and error.

    With --wait the exit status is 1 if it failed or was cancelled.
    """
    from service.ingestion import jobs as queued

    with _open_engine() as engine:
        if wait:
            job = _watch(engine, tenant, job_id)
        else:
            job = queued.get_job(engine, [tenant], job_id=job_id)
    if as_json:
        print_json(asdict(job))
    else:
        _print_job(job)
    if wait and job.state != "succeeded":
        raise typer.Exit(1)


@jobs.command("cancel")
def cancel_job(job_id: JobId, *, tenant: TenantOption) -> None:
    """Take a job off the queue, or ask its worker to stop."""
    from service.ingestion import jobs as queued

    with _open_engine() as engine:
        state = queued.cancel_job(engine, tenant, job_id=job_id)
    if state == "running":
        typer.echo(f"Job {job_id} is asked to stop.")
    elif state == "cancelled":
        typer.echo(f"Job {job_id} is cancelled.")
    else:
        typer.echo(f"Job {job_id} had ended before: {state}.")


@jobs.command("retry")
def retry_job(job_id: JobId, *, tenant: TenantOption) -> None:
    """Queue a job that failed or was cancelled once more."""
    from service.ingestion import jobs as queued

    with _open_engine() as engine:
        queued.retry_job(engine, tenant, job_id=job_id)
    typer.echo(f"Job {job_id} is queued again.")


@contextmanager
def _open_engine() -> Iterator[Engine]:
    from service.db.database import open_database
    from service.settings import load_settings

    with open_database(load_settings()) as database:
        yield database.engine


def _watch(engine: Engine, tenant: str, job_id: str) -> Job:
    """Show a progress bar until the job has ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from service.ingestion import jobs as queued

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("queued", total=None)
        for job in queued.watch_job(engine, [tenant], job_id=job_id):
            bar.update(
                task,
                description=job.state,
                completed=job.progress_done,
                total=job.progress_total,
            )
    return job


def _print_job(job: Job) -> None:
    row = _make_row(job)
    lines = {
        "job": job.job_id,
        "kind": job.kind,
        "state": job.state,
        "progress": row.progress,
        "created": job.created_at,
        "started": job.started_at,
        "finished": job.finished_at,
        "error": row.error,
    }
    for name, value in lines.items():
        if value:
            shown = f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else value
            typer.echo(f"{name:9} {shown}")
    if job.result is not None:
        print_json(job.result)


def _make_row(job: Job) -> JobRow:
    of_total = "" if job.progress_total is None else f"/{job.progress_total}"
    error = None if job.error is None else f"{job.error.message} {job.error.hint or ''}".strip()
    return JobRow(
        job.job_id,
        job.kind,
        job.state,
        f"{job.progress_done}{of_total}",
        job.created_at,
        error,
    )
