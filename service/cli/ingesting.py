"""What the ingest commands share: options, the tenant's ingestion, a progress bar, the report."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import print_json
from service.errors import InvalidInput

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

    from service.ingestion.convert import NodeGroup
    from service.ingestion.fetch import Fetcher
    from service.ingestion.ingest import Ingestion, IngestReport, OnProgress, Rejection

MAX_INPUT_BYTES = 100 * 10**6
TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant to write to.")]
DatasetOption = Annotated[str, typer.Option("--dataset", help="The dataset within it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove what the dataset has and the source has not.")
]

AllowMixed = Annotated[
    bool,
    typer.Option(
        "--allow-mixed", help="Let another model than the tenant's in if its dimension is equal."
    ),
]


@contextmanager
def open_ingestion(
    tenant: str, dataset: str, *, dry_run: bool, allow_mixed: bool = False
) -> Iterator[Ingestion]:
    """Open the database and the model of the settings for one tenant and dataset."""
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.ingestion.ingest import Ingestion
    from service.settings import load_settings

    settings = load_settings()
    with open_database(settings) as database:
        yield Ingestion(
            database.engine,
            tenant,
            load_embedder(settings.embedding_model),
            dataset_name=dataset,
            dry_run=dry_run,
            allow_mixed=allow_mixed,
        )


def find_fetcher() -> Fetcher | None:
    """What fetches pages from the web, where the settings allow it."""
    from service.settings import load_settings

    settings = load_settings()
    if not settings.contextforge_allow_urls:
        return None
    from service.ingestion.fetch import Fetcher

    return Fetcher(ports=settings.contextforge_url_ports)


def run_with_progress(
    ingestion: Ingestion,
    groups: Iterable[NodeGroup | Rejection],
    *,
    total: int | None,
    prune: bool = False,
    prune_types: Collection[str] = (),
) -> IngestReport:
    """Ingest behind a progress bar."""
    with show_progress("ingest", total=total) as on_progress:
        return ingestion.run(groups, prune=prune, prune_types=prune_types, on_progress=on_progress)


@contextmanager
def show_progress(title: str, *, total: int | None) -> Iterator[OnProgress]:
    """Show a bar with rate and remaining time, where there is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """How many are done in a second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.0f}/s" if task.speed else "")

    console = Console(stderr=True)
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


def read_input(path: str) -> bytes:
    """All bytes of a file, or with - of standard input, up to a limit."""
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
            data = stream.read(MAX_INPUT_BYTES + 1)
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc.strerror}).") from exc
    if len(data) > MAX_INPUT_BYTES:
        raise InvalidInput(
            f"{path}: larger than {MAX_INPUT_BYTES // 10**6} MB.",
            hint="Divide it into smaller files.",
        )
    return data


@contextmanager
def name_source(source: str) -> Iterator[None]:
    """Put the name of the source before what is wrong with it."""
    try:
        yield
    except InvalidInput as exc:
        raise InvalidInput(f"{source}: {exc.message}", hint=exc.hint) from exc


def show_report(report: IngestReport, *, as_json: bool) -> None:
    """Print what was done; exit with 1 if anything was rejected."""
    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(
            f"{report.added} added, {report.changed} changed, {report.unchanged} unchanged, "
            f"{report.removed} removed, {len(report.rejected)} rejected; "
            f"{report.nodes} nodes, {report.embedded} embedded, {report.links} new links."
        )
        for rejection in report.rejected:
            typer.echo(f"rejected {rejection.source}: {rejection.reason}", err=True)
    if report.rejected:
        raise typer.Exit(1)
