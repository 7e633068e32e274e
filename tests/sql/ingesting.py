"""What the tests of ingestion share: files, documents, and the shapes of their fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from service.errors import ServiceError
from service.ingestion.convert import NodeGroup, group_document, group_rows
from service.ingestion.documents import Document, Section
from service.ingestion.ingest import IngestReport, Rejection
from service.ingestion.jsonl import NodeRow
from service.ingestion.read import find_files, read_document, read_rows
from tests.tiny_embedder import TinyEmbedder

Links = Callable[[], set[tuple[str, str]]]


GUIDE = """# Guide

The guide explains how the index of one tenant is built and how it is asked a question.

## Install

Run the installer once, then start the server and wait until it answers your first request.

### Windows

On Windows the installer asks for a folder, and it never needs the rights of an administrator.

## Use

Ask a question in plain words; the answer names the sections that it was taken from.
"""


FILES = {
    "guide.md": GUIDE,
    "web/page.html": '<html lang="de"><head><title>Die Seite</title></head><body>'
    "<h1>Die Seite</h1><p>Hier steht ein kurzer Absatz über Kartoffeln und ihren Anbau.</p>"
    "<h2>Ernte</h2><p>Geerntet wird im Herbst, wenn das Kraut welk geworden ist.</p></body></html>",
    "notes.txt": "The zeppelin landed at noon on the lawn behind the house.\n\nNobody had expected "
    "that it would arrive before the evening, and the band was still asleep.\n",
    "manual.rst": "Manual\n======\n\nTurn the crank.\n\nCare\n----\n\nOil it every spring.\n",
    "rows.jsonl": '{"external_id": "r1", "node_type": "fact", "title": "Lark", "content": "A '
    'lark sings."}\n{"_id": "r2", "title": "Owl", "text": "An owl hunts at night."}\n',
}


Source = Path | Iterable[NodeGroup | Rejection]


class Ingest(Protocol):
    def __call__(
        self,
        source: Source,
        *,
        tenant: str = "acme",
        embedder: TinyEmbedder | None = None,
        prune: bool = False,
        dry_run: bool = False,
        dataset: str = "default",
    ) -> IngestReport: ...


Ask = Callable[..., list[tuple[Any, ...]]]


Find = Callable[..., list[str]]


def read_groups(folder: Path) -> Iterator[NodeGroup | Rejection]:
    """What the command makes of a folder."""
    for source in find_files([str(folder)]):
        try:
            if source.format == "jsonl":
                rows = [row for row in read_rows(source) if isinstance(row, NodeRow)]
                yield from group_rows(source.name, rows)
            else:
                yield group_document(read_document(source))
        except ServiceError as exc:
            yield Rejection(source.external_id, str(exc))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def make_document(external_id: str, *contents: str, **fields: Any) -> Document:
    """A document with a section for each content, below headings A, B, C..."""
    sections = tuple(
        Section(place, chr(65 + place), f"{external_id} > {chr(65 + place)}", content, 5)
        for place, content in enumerate(contents)
    )
    given = {"title": external_id, "content": "\n".join(contents), "sections": sections}
    return Document(external_id, **{**given, **fields})


LINKED = {
    "a.md": "# First\n\nSee [b](sub/b.md#part), [[Cat Page|cats]] and <https://Example.com/d>.",
    "sub/b.md": "# Second\n\nBack [up](../a.md), to [c](/c.html), and [here](#part).",
    "c.html": "<html><head><title>Cats</title></head><body><h1>Cat Page</h1>"
    '<p>A cat asks <a href="sub/b.md">the second page</a> about its dinner.</p>'
    f"{'<p>Then it sleeps in the sun until somebody opens the door of the kitchen.</p>' * 6}"
    "</body></html>",
    "d.md": "---\nurl: https://example.com/d\n---\n# Fourth\n\nRead [[übersicht]] first.",
    "e.md": "# Übersicht\n\nTo [nobody](missing.md), [out](../../a.md), [[Nowhere]], [me](e.md).",
}


GRAPH = {
    *(("a.md", "sub/b.md"), ("a.md", "c.html"), ("a.md", "d.md")),
    *(("sub/b.md", "a.md"), ("sub/b.md", "c.html"), ("c.html", "sub/b.md"), ("d.md", "e.md")),
}
