"""What commands with --queue share: the option, and handing the work over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import print_json

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.types import Job

Queue = Annotated[
    bool, typer.Option("--queue", help="Leave it to `contextforge worker`; print the job's id.")
]


def queue_job(enqueue: Callable[[Engine], Job], *, as_json: bool) -> None:
    """Put work on the queue and print the id of the job."""
    from service.db.database import open_database
    from service.settings import load_settings

    with open_database(load_settings()) as database:
        job = enqueue(database.engine)
    if as_json:
        print_json(asdict(job))
        return
    typer.echo(job.job_id)
    typer.echo(
        f"Queued; see: contextforge jobs show {job.job_id} --tenant {job.tenant_id}", err=True
    )
