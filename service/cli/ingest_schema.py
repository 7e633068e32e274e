"""contextforge ingest-schema and ingest-examples: what text-to-SQL answers from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.ingesting import (
    AllowMixed,
    DatasetOption,
    DryRun,
    Prune,
    TenantOption,
    name_source,
    open_ingestion,
    read_input,
    run_with_progress,
    show_progress,
    show_report,
)
from service.cli.output import AsJson
from service.cli.queueing import Queue, queue_job
from service.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.ingestion.jobs import IngestOptions
    from service.ingestion.schema_model import Schema


class ExampleFormatName(StrEnum):
    """The formats of examples, as choices of the command line."""

    json = "json"
    jsonl = "jsonl"
    csv = "csv"


def ingest_schema(
    source: Annotated[str, typer.Argument(help="A database URL, or a JSON file; - is stdin.")],
    *,
    tenant: TenantOption,
    dataset: DatasetOption,
    database: Annotated[
        str | None, typer.Option(help="Which one, of a file with several databases.")
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option(help="Only this schema; may be given again.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=20, help="Sample values a column.")] = 3,
    mask: Annotated[
        list[str] | None,
        typer.Option(help="Columns to take no values of, beside the usual ones: a pattern."),
    ] = None,
    prune: Prune = False,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    queue: Queue = False,
    as_json: AsJson = False,
) -> None:
    """Read the tables of a live database or of a JSON file, embed and store them.

    The database is only read. One dataset holds one database: --prune removes other tables.
    """
    from service.ingestion.convert import group_schema

    if queue:
        options = _options(dataset, prune=prune, allow_mixed=allow_mixed, dry_run=dry_run)
        _queue_schema(source, tenant, database=database, options=options, as_json=as_json)
        return
    if "://" in source:
        if database is not None:
            raise InvalidInput("--database is for files: a URL names its database itself.")
        found = _read_live(source, schemas=schema, samples=samples, mask=mask or ())
    else:
        if schema:
            raise InvalidInput("--schema is for live databases: a file is read whole.")
        found = _read_file(source, database)
    if not found.tables:
        raise InvalidInput("The source has no tables.", hint="Is it the right database or schema?")
    with open_ingestion(tenant, dataset, dry_run=dry_run, allow_mixed=allow_mixed) as ingestion:
        report = run_with_progress(
            ingestion, group_schema(found), total=len(found.tables), prune=prune
        )
    show_report(report, as_json=as_json)


def ingest_examples(
    path: Annotated[str, typer.Argument(help="A JSON, JSON Lines or CSV file; - is stdin.")],
    *,
    tenant: TenantOption,
    dataset: DatasetOption,
    # The option is the word people look for.
    format: Annotated[  # noqa: A002
        ExampleFormatName | None, typer.Option(help="The format, where the name does not say it.")
    ] = None,
    allow_mixed: AllowMixed = False,
    dry_run: DryRun = False,
    queue: Queue = False,
    as_json: AsJson = False,
) -> None:
    """Store questions with the SQL that answers them, and explanations.

    A bad row is reported and the rest goes on; the exit status is 1 then.
    """
    from service.ingestion.convert import group_examples
    from service.ingestion.examples import BadRow, Example, read_examples
    from service.ingestion.ingest import Rejection

    chosen = format or _format_of(path)
    data = read_input(path)
    if queue:
        options = _options(dataset, allow_mixed=allow_mixed, dry_run=dry_run)
        _queue_examples(path, data, tenant, chosen=chosen, options=options, as_json=as_json)
        return
    with name_source(path):
        rows = read_examples(data, format=chosen.value)
    examples = [row for row in rows if isinstance(row, Example)]
    bad = [
        Rejection(f"{path}, row {row.row}", row.reason) for row in rows if isinstance(row, BadRow)
    ]
    with open_ingestion(tenant, dataset, dry_run=dry_run, allow_mixed=allow_mixed) as ingestion:
        report = run_with_progress(
            ingestion, [*group_examples(path, examples), *bad], total=len(examples)
        )
    show_report(report, as_json=as_json)


def _options(
    dataset: str, *, prune: bool = False, allow_mixed: bool, dry_run: bool
) -> IngestOptions:
    from service.ingestion.jobs import IngestOptions

    return IngestOptions(dataset, prune=prune, allow_mixed=allow_mixed, dry_run=dry_run)


def _queue_schema(
    source: str, tenant: str, *, database: str | None, options: IngestOptions, as_json: bool
) -> None:
    from service.ingestion.jobs import enqueue_schema
    from service.types import InlineDocument

    if "://" in source:
        raise InvalidInput(
            "Only a schema file can be queued: a URL with its password would be stored.",
            hint="Leave --queue out.",
        )
    document = InlineDocument(source, read_input(source))
    queue_job(
        lambda engine: enqueue_schema(
            engine, tenant, document=document, database=database, options=options
        ),
        as_json=as_json,
    )


def _queue_examples(
    path: str,
    data: bytes,
    tenant: str,
    *,
    chosen: ExampleFormatName,
    options: IngestOptions,
    as_json: bool,
) -> None:
    from service.ingestion.jobs import enqueue_examples
    from service.types import InlineDocument

    document = InlineDocument(path, data)
    queue_job(
        lambda engine: enqueue_examples(
            engine, tenant, document=document, example_format=chosen.value, options=options
        ),
        as_json=as_json,
    )


def _read_live(
    url: str, *, schemas: Sequence[str] | None, samples: int, mask: Sequence[str]
) -> Schema:
    from service.ingestion.schema_reader import read_live_schema
    from service.ingestion.schema_rows import DEFAULT_MASK

    with show_progress("tables", total=None) as on_progress:
        return read_live_schema(
            url,
            schemas=schemas or None,
            samples=samples,
            mask=(*DEFAULT_MASK, *mask),
            on_progress=lambda _done, _total: on_progress(1),
        )


def _read_file(path: str, database: str | None) -> Schema:
    from service.ingestion.schema_file import read_schema_file

    data = read_input(path)
    with name_source(path):
        return read_schema_file(data, database=database)


def _format_of(path: str) -> ExampleFormatName:
    suffix = PurePath(path).suffix.lower().removeprefix(".")
    if suffix not in list(ExampleFormatName):
        raise InvalidInput(
            f"{path}: the name does not say the format.", hint="Give --format json, jsonl or csv."
        )
    return ExampleFormatName(suffix)
