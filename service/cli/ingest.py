"""contextforge ingest: files and folders become searchable nodes of a tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.ingesting import (
    AllowMixed,
    DatasetOption,
    DryRun,
    Prune,
    TenantOption,
    find_fetcher,
    open_ingestion,
    run_with_progress,
    show_report,
)
from service.cli.output import AsJson
from service.cli.queueing import Queue, queue_job


def ingest(
    paths: Annotated[list[str], typer.Argument(help="Files, folders, globs or URLs; - is stdin.")],
    *,
    tenant: TenantOption,
    dataset: DatasetOption = "default",
    root: Annotated[
        Path | None, typer.Option(help="Documents are named by their path below this folder.")
    ] = None,
    size: Annotated[int, typer.Option(help="Most tokens a section.")] = 400,
    overlap: Annotated[float, typer.Option(help="Share of tokens two sections share.")] = 0.12,
    prune: Prune = False,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    queue: Queue = False,
    as_json: AsJson = False,
) -> None:
    """Read, split, embed and store documents: Markdown, HTML, PDF, text, reST, JSON Lines, BEIR.

    What is unchanged is left alone. A bad file is reported and the rest goes on; the exit status
    is 1 then. Queued paths are read where the worker runs.
    """
    from service.ingestion.gather import DOCUMENT_TYPES, count_documents, gather_groups
    from service.ingestion.jobs import IngestOptions, enqueue_paths
    from service.ingestion.read import find_files
    from service.ingestion.split import check_limits

    check_limits(size, overlap)
    if queue:
        options = IngestOptions(dataset, size, overlap, prune, allow_mixed, dry_run)
        below = None if root is None else str(root)
        queue_job(
            lambda engine: enqueue_paths(engine, tenant, paths=paths, root=below, options=options),
            as_json=as_json,
        )
        return
    sources = find_files(paths, root=root)
    groups = gather_groups(sources, size=size, overlap=overlap, fetcher=find_fetcher())
    with open_ingestion(tenant, dataset, dry_run=dry_run, allow_mixed=allow_mixed) as ingestion:
        report = run_with_progress(
            ingestion,
            groups,
            total=count_documents(sources),
            prune=prune,
            prune_types=DOCUMENT_TYPES,
        )
    show_report(report, as_json=as_json)
