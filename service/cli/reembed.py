"""contextforge reembed: change a tenant's embedding model while searches go on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.comparisons import AcceptChanges, show_comparison
from service.cli.output import AsJson, print_json
from service.cli.queueing import Queue, queue_job

if TYPE_CHECKING:
    from service.ingestion.reembed import Reembedding, ReembedReport


def reembed(
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose model changes.")],
    model: Annotated[str | None, typer.Option("--model", help="The new model, by name.")] = None,
    abort: Annotated[
        bool, typer.Option("--abort", help="Drop what was embedded for the new model so far.")
    ] = False,
    accept_changes: AcceptChanges = False,
    queue: Queue = False,
    as_json: AsJson = False,
) -> None:
    """Embed a tenant's nodes with another model, then switch; interrupted, run it again.

    Until the switch, searches find what they always found. Before it, questions that were really
    asked are searched both ways; where results get much worse, nothing is switched.
    """
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.ingestion.jobs import enqueue_reembed
    from service.ingestion.reembed import Reembedding, abort_reembedding
    from service.ingestion.regression import EmbedderGate, make_finder
    from service.settings import load_settings

    if abort == (model is not None):
        raise typer.BadParameter("give either --model or --abort.")
    if queue:
        if model is None:
            raise typer.BadParameter("--abort is done at once and cannot be queued.")
        queue_job(
            lambda engine: enqueue_reembed(
                engine, tenant, model=model, accept_changes=accept_changes
            ),
            as_json=as_json,
        )
        return
    settings = load_settings()
    with open_database(settings) as database:
        if model is None:
            dropped = abort_reembedding(database.engine, tenant)
            _show_abort(tenant, dropped, as_json=as_json)
            return
        embedder = load_embedder(model)
        gate = EmbedderGate(make_finder(load_embedder, embedder), accept=accept_changes)
        reembedding = Reembedding(database.engine, tenant, embedder, gate)
        report = _run_with_progress(reembedding)
    _show_report(report, model, renamed=model != settings.embedding_model, as_json=as_json)


def _run_with_progress(reembedding: Reembedding) -> ReembedReport:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("reembed"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("reembed", total=None)
        return reembedding.run(
            on_progress=lambda done, total: bar.update(task, completed=done, total=total)
        )


def _show_report(report: ReembedReport, model: str, *, renamed: bool, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    typer.echo(
        f"{report.tenant_id} is searched by {report.embedder_version} now; "
        f"{report.embedded} nodes embedded, {report.switched} switched."
    )
    if report.comparison is not None:
        show_comparison(report.comparison)
    if renamed:
        typer.echo(f"Set EMBEDDING_MODEL={model} for what embeds its questions and documents.")


def _show_abort(tenant: str, dropped: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"tenant_id": tenant, "dropped": dropped})
        return
    typer.echo(f"{dropped} embeddings dropped; {tenant} is searched as before.")
