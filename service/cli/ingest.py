"""contextforge ingest: files and folders become searchable nodes of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.ingesting import (
    DatasetOption,
    DryRun,
    Prune,
    TenantOption,
    open_ingestion,
    run_with_progress,
    show_report,
)
from service.cli.output import AsJson
from service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.ingestion.convert import NodeGroup
    from service.ingestion.ingest import Rejection
    from service.ingestion.read import Source

# Documents are articles; what a JSON Lines file has besides is pruned too.
DOCUMENT_TYPES = ("article",)

AllowMixed = Annotated[
    bool,
    typer.Option(
        "--allow-mixed", help="Let another model than the tenant's in if its dimension is equal."
    ),
]


def ingest(
    paths: Annotated[list[str], typer.Argument(help="Files, folders or globs; - is stdin.")],
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
    as_json: AsJson = False,
) -> None:
    """Read, split, embed and store documents: Markdown, HTML, PDF, text, reST, JSON Lines, BEIR.

    What is unchanged is left alone. A bad file is reported and the rest goes on; the exit status
    is 1 then.
    """
    from service.ingestion.read import find_files
    from service.ingestion.split import check_limits

    check_limits(size, overlap)
    sources = find_files(paths, root=root)
    groups = (
        group for source in sources for group in _read_source(source, size=size, overlap=overlap)
    )
    with open_ingestion(tenant, dataset, dry_run=dry_run, allow_mixed=allow_mixed) as ingestion:
        report = run_with_progress(
            ingestion,
            groups,
            total=_total(sources),
            prune=prune,
            prune_types=DOCUMENT_TYPES,
        )
    show_report(report, as_json=as_json)


def _total(sources: Sequence[Source]) -> int | None:
    """How many documents there are; unknown where a file holds many."""
    return None if any(source.format == "jsonl" for source in sources) else len(sources)


def _read_source(source: Source, *, size: int, overlap: float) -> Iterator[NodeGroup | Rejection]:
    from service.ingestion.convert import group_document, group_rows
    from service.ingestion.ingest import Rejection
    from service.ingestion.jsonl import BadLine, NodeRow
    from service.ingestion.read import read_document, read_rows

    bad: list[BadLine] = []

    def good_rows() -> Iterator[NodeRow]:
        for row in read_rows(source):
            if isinstance(row, BadLine):
                bad.append(row)
            else:
                yield row

    try:
        if source.format == "jsonl":
            yield from group_rows(source.name, good_rows())
        else:
            yield group_document(read_document(source, size=size, overlap=overlap))
    except ServiceError as exc:
        is_document = source.format != "jsonl"
        yield Rejection(source.external_id, str(exc), is_document=is_document)
    yield from (
        Rejection(f"{source.name}, line {line.line}", line.reason, is_document=False)
        for line in bad
    )
