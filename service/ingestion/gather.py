"""From sources to groups of nodes: what could not be read stands among them, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING

from service.errors import ServiceError
from service.ingestion.convert import NodeGroup, group_document, group_rows
from service.ingestion.ingest import Rejection
from service.ingestion.jsonl import BadLine, NodeRow
from service.ingestion.read import FORMATS, Source, read_document, read_rows, sniff_format
from service.types import InlineDocument

if TYPE_CHECKING:
    from service.ingestion.fetch import Fetcher

# Documents are articles; what a JSON Lines file has besides is pruned too.
DOCUMENT_TYPES = ("article",)


def open_document(document: InlineDocument) -> Source:
    """A document that was handed over whole as a source; its name tells the format, or its text."""
    suffix = PurePath(document.name).suffix.lower()
    known = FORMATS.get(suffix) or sniff_format(document.content)
    return Source(document.name, known, stream=BytesIO(document.content))


def gather_groups(
    sources: Iterable[Source], *, size: int, overlap: float, fetcher: Fetcher | None = None
) -> Iterator[NodeGroup | Rejection]:
    """The groups of every source, read when they are asked for; without a fetcher no URL is."""
    for source in sources:
        found = _fetch(source, fetcher)
        if isinstance(found, Rejection):
            yield found
        else:
            yield from _read_source(found, size=size, overlap=overlap)


def count_documents(sources: Sequence[Source]) -> int | None:
    """How many documents there are; unknown where a file holds many."""
    return None if any(source.format == "jsonl" for source in sources) else len(sources)


def _fetch(source: Source, fetcher: Fetcher | None) -> Source | Rejection:
    """The source, with its page if it is one that stands in the web."""
    if source.url is None:
        return source
    from service.ingestion.fetch import fetch_source, hide_login

    try:
        return fetch_source(source, fetcher)
    except ServiceError as exc:
        name = hide_login(source.external_id)
        return Rejection(name, str(exc), is_known=source.format != "jsonl")


def _read_source(source: Source, *, size: int, overlap: float) -> Iterator[NodeGroup | Rejection]:
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
        yield Rejection(source.external_id, str(exc), is_known=source.format != "jsonl")
    yield from (
        Rejection(f"{source.name}, line {line.line}", line.reason, is_known=False) for line in bad
    )
