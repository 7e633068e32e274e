"""A set as a tenant of its own: named by what it holds, loaded once, reused while it is kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Engine

from service.db.engine import tenant_transaction
from service.db.evaluation import count_nodes
from service.db.maintenance import merge_segments, refresh_ann
from service.embedding import Embedder
from service.evaluation.beir import DEFAULT_SPLIT, JudgedSet, hash_corpus, read_set
from service.evaluation.text_to_sql import (
    SCHEMAS,
    SqlSet,
    find_field_set,
    is_schema_folder,
    read_schema_set,
)
from service.evaluation.vectors import GivenVectors
from service.ingestion.convert import NodeGroup, group_rows, group_schema
from service.ingestion.ingest import Ingestion, OnProgress, Rejection
from service.ingestion.jsonl import BadLine, NodeRow
from service.ingestion.read import Source, read_rows
from service.ingestion.schema_model import Schema, schema_nodes

_NO_NAME = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class SourceSet:
    """A folder that was read: its judged questions, and what there is to load.

    Where there are schemas, each is loaded as a dataset, and fields are what is found.
    """

    judged: JudgedSet
    sql_set: SqlSet | None
    schemas: tuple[Schema, ...]
    digest: str
    documents: int


@dataclass(frozen=True, slots=True)
class ScratchTenant:
    """Where a set is loaded: a tenant whose name says what it holds."""

    tenant_id: str
    source: SourceSet
    embedder: Embedder


def read_source(folder: Path, *, split: str = DEFAULT_SPLIT) -> SourceSet:
    """Read a BEIR folder, or one with schemas and questions with their SQL."""
    if is_schema_folder(folder):
        read = read_schema_set(folder)
        digest = hashlib.sha256((folder / SCHEMAS).read_bytes())
        digest.update("\n".join(schema.name or "" for schema in read.schemas).encode())
        nodes = sum(len(schema_nodes(schema).nodes) for schema in read.schemas)
        return SourceSet(read.sql_set.judged, read.sql_set, read.schemas, digest.hexdigest(), nodes)
    judged = read_set(folder, split=split)
    corpus_digest, documents = hash_corpus(judged.corpus)
    return SourceSet(judged, find_field_set(judged), (), corpus_digest, documents)


def name_scratch(source: SourceSet, embedder: Embedder, *, lang: str) -> ScratchTenant:
    """The tenant of a set under an embedder: another corpus or embedder, another tenant."""
    slug = _NO_NAME.sub("-", source.judged.folder.resolve().name).strip("-").lower()[:24]
    parts = "\n".join((source.digest, embedder.version, lang))
    whole = hashlib.sha256(parts.encode()).hexdigest()[:16]
    return ScratchTenant(f"eval-{slug or 'set'}-{whole}", source, embedder)


def load_scratch(
    engine: Engine, scratch: ScratchTenant, *, on_progress: OnProgress | None = None
) -> tuple[Rejection, ...]:
    """Bring the tenant, which must exist, to its set; whole already, it stays as it is."""
    tenant_id, source = scratch.tenant_id, scratch.source
    with tenant_transaction(engine, [tenant_id]) as connection:
        stored = count_nodes(connection, tenant_id)
    if stored == source.documents:
        # An interrupted load may have left its links for later.
        Ingestion(engine, tenant_id, scratch.embedder).run(())
        return ()
    rejected: list[Rejection] = []
    for dataset, groups in _list_datasets(scratch):
        ingestion = Ingestion(engine, tenant_id, scratch.embedder, dataset_name=dataset)
        rejected += ingestion.run(groups, on_progress=on_progress).rejected
    _tidy(engine, tenant_id)
    return tuple(rejected)


def _tidy(engine: Engine, tenant_id: str) -> None:
    """Bring a tenant to the state upkeep leaves it in: what is measured is what is served."""
    with tenant_transaction(engine, [tenant_id]) as connection:
        merge_segments(connection, tenant_id)
    moved = 1
    while moved:
        with tenant_transaction(engine, [tenant_id]) as connection:
            moved = refresh_ann(connection, tenant_id)


def _list_datasets(
    scratch: ScratchTenant,
) -> Iterator[tuple[str, Iterator[NodeGroup | Rejection]]]:
    if not scratch.source.schemas:
        yield "default", _corpus_groups(scratch)
    for schema in scratch.source.schemas:
        yield schema.name or "default", iter(group_schema(schema))


def _corpus_groups(scratch: ScratchTenant) -> Iterator[NodeGroup | Rejection]:
    corpus, embedder = scratch.source.judged.corpus, scratch.embedder
    source = Source(corpus.name, "jsonl", path=corpus)
    bad: list[BadLine] = []

    def good_rows() -> Iterator[NodeRow]:
        for place, row in enumerate(read_rows(source)):
            if isinstance(row, BadLine):
                bad.append(row)
            elif isinstance(embedder, GivenVectors):
                yield replace(row, embedding=embedder.documents[place])
            else:
                yield row

    yield from group_rows(source.name, good_rows())
    for line in bad:
        yield Rejection(f"{source.name}, line {line.line}", line.reason, is_known=False)
