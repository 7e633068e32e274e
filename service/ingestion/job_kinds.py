"""The kinds of jobs that ingestion brings; a worker is given these and may be given others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any, cast

from service.db.engine import tenant_transaction
from service.db.maintenance import merge_segments
from service.ingestion.convert import NodeGroup, group_examples, group_schema
from service.ingestion.examples import BadRow, Example, read_examples
from service.ingestion.gather import (
    DOCUMENT_TYPES,
    count_documents,
    gather_groups,
    open_document,
)
from service.ingestion.ingest import Ingestion, Rejection
from service.ingestion.job_runner import Kind, Work
from service.ingestion.jobs import (
    INGEST_DOCUMENTS,
    INGEST_EXAMPLES,
    INGEST_PATHS,
    INGEST_SCHEMA,
    MERGE_SEGMENTS,
    REEMBED,
    IngestOptions,
)
from service.ingestion.read import find_files
from service.ingestion.reembed import Reembedding
from service.ingestion.regression import EmbedderGate, make_finder
from service.ingestion.schema_file import read_schema_file
from service.types import Json


def ingest_paths(work: Work) -> Mapping[str, Json]:
    """Ingest files, folders and globs of the machine this runs on, and pages of the web."""
    given = _arguments(work)
    root = None if given["root"] is None else Path(given["root"])
    sources = find_files(given["paths"], root=root)
    options = _options(work)
    return _ingest(
        work,
        gather_groups(sources, size=options.size, overlap=options.overlap, fetcher=work.fetcher),
        total=count_documents(sources),
        prune_types=DOCUMENT_TYPES,
    )


def ingest_documents(work: Work) -> Mapping[str, Json]:
    """Ingest the documents that came with the job."""
    options = _options(work)
    sources = (open_document(document) for document in work.read_documents())
    holds_many = any(_suffix(name) == ".jsonl" for name in work.job.document_names)
    return _ingest(
        work,
        gather_groups(sources, size=options.size, overlap=options.overlap),
        total=None if holds_many else len(work.job.document_names),
        prune_types=DOCUMENT_TYPES,
    )


def ingest_schema(work: Work) -> Mapping[str, Json]:
    """Ingest the tables of a schema file."""
    [document] = work.read_documents()
    schema = read_schema_file(document.content, database=_arguments(work)["database"])
    return _ingest(work, group_schema(schema), total=len(schema.tables))


def ingest_examples(work: Work) -> Mapping[str, Json]:
    """Ingest questions with their SQL."""
    [document] = work.read_documents()
    rows = read_examples(document.content, format=_arguments(work)["format"])
    examples = [row for row in rows if isinstance(row, Example)]
    bad = [
        Rejection(f"{document.name}, row {row.row}", row.reason)
        for row in rows
        if isinstance(row, BadRow)
    ]
    groups: list[NodeGroup | Rejection] = [*group_examples(document.name, examples), *bad]
    return _ingest(work, groups, total=len(examples))


def reembed(work: Work) -> Mapping[str, Json]:
    """Change the tenant's embedding model; cancelled, it can be queued again and goes on."""
    given = _arguments(work)
    embedder = work.load_embedder(given["model"])
    # A job that an earlier release queued does not say.
    accept = bool(given.get("accept_changes"))
    gate = EmbedderGate(make_finder(work.load_embedder, embedder), accept=accept)
    reembedding = Reembedding(work.engine, work.tenant_id, embedder, gate)
    return asdict(reembedding.run(on_progress=work.report))


def merge(work: Work) -> Mapping[str, Json]:
    """Fold the tenant's segments."""
    with tenant_transaction(work.engine, [work.tenant_id]) as connection:
        everything = bool(_arguments(work)["everything"])
        folded = merge_segments(connection, work.tenant_id, everything=everything)
    return {"tenant_id": work.tenant_id, "segments_folded": folded}


INGESTION_KINDS: Mapping[str, Kind] = {
    INGEST_PATHS: ingest_paths,
    INGEST_DOCUMENTS: ingest_documents,
    INGEST_SCHEMA: ingest_schema,
    INGEST_EXAMPLES: ingest_examples,
    REEMBED: reembed,
    MERGE_SEGMENTS: merge,
}


def _ingest(
    work: Work,
    groups: Iterable[NodeGroup | Rejection],
    *,
    total: int | None,
    prune_types: Collection[str] = (),
) -> Mapping[str, Json]:
    options = _options(work)
    ingestion = Ingestion(
        work.engine,
        work.tenant_id,
        work.load_embedder(),
        dataset_name=options.dataset_name,
        dry_run=options.dry_run,
        allow_mixed=options.allow_mixed,
    )
    report = ingestion.run(
        _stoppable(work, groups),
        prune=options.prune,
        prune_types=prune_types,
        on_progress=lambda done: work.report(work.done + done, total),
    )
    return asdict(report)


def _stoppable(
    work: Work, groups: Iterable[NodeGroup | Rejection]
) -> Iterator[NodeGroup | Rejection]:
    """The groups, as long as the job is not asked to stop."""
    for group in groups:
        work.check()
        yield group


def _arguments(work: Work) -> dict[str, Any]:
    return cast("dict[str, Any]", work.arguments)


def _options(work: Work) -> IngestOptions:
    return IngestOptions(**_arguments(work)["options"])


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower()
