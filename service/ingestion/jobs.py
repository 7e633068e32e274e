"""Queued work of a tenant: put on the queue, asked about, cancelled, tried again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Engine

from service.db import jobs as stored
from service.db.engine import tenant_transaction
from service.errors import InvalidInput, NotFound
from service.ingestion.read import STDIN
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE, check_limits
from service.types import InlineDocument, Job, JobState, Json

# One statement carries them; what is more than this comes in several jobs.
MAX_INLINE_BYTES = 256 * 1024 * 1024
INGEST_PATHS = "ingest_paths"
INGEST_DOCUMENTS = "ingest_documents"
INGEST_SCHEMA = "ingest_schema"
INGEST_EXAMPLES = "ingest_examples"
REEMBED = "reembed"
MERGE_SEGMENTS = "merge_segments"


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How documents are ingested, as the command line has it."""

    dataset_name: str = "default"
    size: int = DEFAULT_SIZE
    overlap: float = DEFAULT_OVERLAP
    prune: bool = False
    allow_mixed: bool = False
    dry_run: bool = False


# --- put on the queue -----------------------------------------------------------------------------


def enqueue_job(
    engine: Engine,
    tenant_id: str,
    *,
    kind: str,
    arguments: Mapping[str, Json] | None = None,
    order_key: str | None = None,
    documents: Sequence[InlineDocument] = (),
) -> Job:
    """Queue work of any kind; jobs of a tenant with one order_key run one after the other."""
    with tenant_transaction(engine, [tenant_id]) as connection:
        job_id = stored.enqueue_job(
            connection,
            tenant_id,
            kind=kind,
            arguments=arguments or {},
            order_key=order_key,
            documents=documents,
        )
        [job] = stored.find_jobs(connection, [tenant_id], job_id=job_id)
    return job


def enqueue_paths(
    engine: Engine,
    tenant_id: str,
    *,
    paths: Sequence[str],
    root: str | None = None,
    options: IngestOptions,
) -> Job:
    """Queue files, folders, globs and URLs; they are read where the worker runs, as it may.

    For operators alone: a tenant who may name paths may read the worker's files.
    """
    check_limits(options.size, options.overlap)
    if STDIN in paths:
        raise InvalidInput("A worker has no standard input of yours.", hint="Name files instead.")
    arguments = {
        "paths": [_make_absolute(path) for path in paths],
        "root": None if root is None else _make_absolute(root),
        "options": asdict(options),
    }
    return _enqueue_ingest(engine, tenant_id, kind=INGEST_PATHS, arguments=arguments)


def enqueue_documents(
    engine: Engine,
    tenant_id: str,
    *,
    documents: Sequence[InlineDocument],
    options: IngestOptions | None = None,
) -> Job:
    """Queue documents that are handed over whole; they are kept until the job ends."""
    chosen = options or IngestOptions()
    check_limits(chosen.size, chosen.overlap)
    return _enqueue_ingest(
        engine,
        tenant_id,
        kind=INGEST_DOCUMENTS,
        arguments={"options": asdict(chosen)},
        documents=documents,
    )


def enqueue_schema(
    engine: Engine,
    tenant_id: str,
    *,
    document: InlineDocument,
    database: str | None = None,
    options: IngestOptions,
) -> Job:
    """Queue a schema file, handed over whole."""
    return _enqueue_ingest(
        engine,
        tenant_id,
        kind=INGEST_SCHEMA,
        arguments={"database": database, "options": asdict(options)},
        documents=[document],
    )


def enqueue_examples(
    engine: Engine,
    tenant_id: str,
    *,
    document: InlineDocument,
    example_format: Literal["json", "jsonl", "csv"],
    options: IngestOptions,
) -> Job:
    """Queue a file of questions with their SQL, handed over whole."""
    return _enqueue_ingest(
        engine,
        tenant_id,
        kind=INGEST_EXAMPLES,
        arguments={"format": example_format, "options": asdict(options)},
        documents=[document],
    )


def enqueue_reembed(
    engine: Engine, tenant_id: str, *, model: str, accept_changes: bool = False
) -> Job:
    """Queue the change to another embedding model."""
    arguments: dict[str, Json] = {"model": model, "accept_changes": accept_changes}
    return enqueue_job(engine, tenant_id, kind=REEMBED, arguments=arguments)


def enqueue_merge(engine: Engine, tenant_id: str, *, everything: bool = False) -> Job:
    """Queue the folding of a tenant's segments."""
    arguments = {"everything": everything}
    return enqueue_job(engine, tenant_id, kind=MERGE_SEGMENTS, arguments=arguments)


# --- ask and steer --------------------------------------------------------------------------------


def list_jobs(engine: Engine, tenant_ids: Sequence[str], *, max_rows: int = 100) -> list[Job]:
    """The jobs of these tenants, newest first."""
    with tenant_transaction(engine, tenant_ids) as connection:
        return stored.find_jobs(connection, tenant_ids, max_rows=max_rows)


def get_job(engine: Engine, tenant_ids: Sequence[str], *, job_id: str) -> Job:
    """The job of that id; NotFound if it is nobody's or another tenant's."""
    known = _parse_id(job_id)
    with tenant_transaction(engine, tenant_ids) as connection:
        found = stored.find_jobs(connection, tenant_ids, job_id=known)
    if not found:
        raise _not_found(job_id)
    return found[0]


def watch_job(
    engine: Engine, tenant_ids: Sequence[str], *, job_id: str, every: float = 0.5
) -> Iterator[Job]:
    """The job as it is now, and again every so many seconds until it has ended."""
    job = get_job(engine, tenant_ids, job_id=job_id)
    yield job
    while not job.ended:
        time.sleep(every)
        job = get_job(engine, tenant_ids, job_id=job_id)
        yield job


def cancel_job(engine: Engine, tenant_id: str, *, job_id: str) -> JobState:
    """Take a job off the queue, or ask its worker to stop; the state it has now."""
    known = _parse_id(job_id)
    with tenant_transaction(engine, [tenant_id]) as connection:
        return stored.cancel_job(connection, tenant_id, job_id=known)


def retry_job(engine: Engine, tenant_id: str, *, job_id: str) -> None:
    """Queue a job that failed or was cancelled once more."""
    known = _parse_id(job_id)
    with tenant_transaction(engine, [tenant_id]) as connection:
        stored.retry_job(connection, tenant_id, job_id=known)


def _enqueue_ingest(
    engine: Engine,
    tenant_id: str,
    *,
    kind: str,
    arguments: dict[str, Any],
    documents: Sequence[InlineDocument] = (),
) -> Job:
    """Queue an ingestion; those into one dataset keep their order, else an old text could win."""
    if kind != INGEST_PATHS:
        _check_documents(documents)
    return enqueue_job(
        engine,
        tenant_id,
        kind=kind,
        arguments=arguments,
        order_key=f"ingest {arguments['options']['dataset_name']}",
        documents=documents,
    )


def _make_absolute(path: str) -> str:
    """The path, independent of the folder a worker runs in; URLs are so already."""
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100 (globs are no paths)


def _check_documents(documents: Sequence[InlineDocument]) -> None:
    if not documents:
        raise InvalidInput("There are no documents to ingest.")
    seen: set[str] = set()
    for document in documents:
        if not document.name.strip() or "\x00" in document.name:
            raise InvalidInput("The name of a document is empty or has a NUL byte in it.")
        if document.name in seen:
            raise InvalidInput(f'Two documents have the name "{document.name}".')
        seen.add(document.name)
    if sum(len(document.content) for document in documents) > MAX_INLINE_BYTES:
        raise InvalidInput(
            f"The documents are larger than {MAX_INLINE_BYTES // 1024**2} MiB together.",
            hint="Send them in several jobs.",
        )


def _parse_id(job_id: str) -> str:
    try:
        return str(UUID(job_id))
    except ValueError as exc:
        raise _not_found(job_id) from exc


def _not_found(job_id: str) -> NotFound:
    return NotFound(f'There is no job "{job_id}".', hint="See: contextforge jobs list")
