"""From paths to documents: which files there are, and what each one holds."""

from __future__ import annotations

import glob
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.jsonl import BEIR_CORPUS, BadLine, NodeRow, is_beir_folder, read_jsonl
from service.ingestion.links import resolve_link
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE

Format = Literal["markdown", "html", "pdf", "text", "restructured", "jsonl"]

MAX_BYTES = 32 * 1024 * 1024
FORMATS: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".txt": "text",
    ".rst": "restructured",
    ".jsonl": "jsonl",
}
STDIN = "-"
_STDIN_NAME = "stdin"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SNIFFED = 4096
_LANGUAGE_SAMPLE = 4000
_LANGUAGE_LETTERS = 60
_LANGUAGE_CONFIDENCE = 0.9
_NO_LANGUAGE = frozenset({"zxx", "und", "mul"})


@dataclass(frozen=True, slots=True)
class Source:
    """Something to ingest: a file, standard input, or a page to be fetched from its URL.

    The external id is its path below a root, or its URL as it was given.
    """

    external_id: str
    format: Format
    path: Path | None = None
    stream: BinaryIO | None = None
    url: str | None = None

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        return str(self.path) if self.path is not None else self.external_id


def find_files(
    paths: Sequence[str], *, root: Path | None = None, stdin: BufferedReader | None = None
) -> list[Source]:
    """The sources that files, folders, globs, URLs and `-` name, in order, each once.

    External ids are relative to `root`, else to the folder given; a file given alone has its name.
    What stands at a URL is not looked at here.
    """
    found: dict[str, Source] = {}
    for given in paths:
        for source in _find(given, root, stdin):
            key = os.path.realpath(source.path) if source.path is not None else source.external_id
            found.setdefault(key, source)
    sources = list(found.values())
    _refuse_same_ids(sources)
    return sources


def read_document(
    source: Source, *, size: int = DEFAULT_SIZE, overlap: float = DEFAULT_OVERLAP
) -> Document:
    """The document in a source with its language; what cannot be read is refused by its place."""
    if source.format == "jsonl":
        raise InvalidInput(f"{source.name}: JSON Lines hold nodes, not one document.")
    data = _read_bytes(source)
    if not data.strip():
        raise InvalidInput(f"{source.name}: the file is empty.")
    read = _reader(source.format)
    # Links of a fetched page start at where it stands, which is not where it was asked for.
    place = source.url or source.external_id
    document = read(data, external_id=place, size=size, overlap=overlap)
    if not document.sections:
        raise InvalidInput(f"{source.name}: the file holds no text.")
    return replace(
        document,
        external_id=source.external_id,
        url=source.url or document.url,
        lang=document.lang or detect_language(document.content),
    )


def read_rows(source: Source) -> Iterator[NodeRow | BadLine]:
    """The nodes of a JSON Lines source, one after the other, bad lines among them."""
    with _open(source) as stream:
        yield from read_jsonl(_bounded_lines(stream, source.name))


def detect_language(text: str) -> str | None:
    """The language's ISO code where the text is long enough to be sure, else None."""
    sample = text[:_LANGUAGE_SAMPLE]
    if sum(map(str.isalpha, sample)) < _LANGUAGE_LETTERS:
        return None
    language, confidence = _language_classifier()(sample)
    return None if confidence < _LANGUAGE_CONFIDENCE or language in _NO_LANGUAGE else language


@cache
def _language_classifier() -> Callable[[str], tuple[str, float]]:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    classify: Callable[[str], tuple[str, float]] = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True
    ).classify
    return classify


def _find(given: str, root: Path | None, stdin: BufferedReader | None) -> Iterator[Source]:
    path = Path(given)
    if given == STDIN:
        stream = stdin or sys.stdin.buffer
        head = stream.peek(_SNIFFED)[:_SNIFFED] if isinstance(stream, BufferedReader) else b""
        yield Source(_STDIN_NAME, sniff_format(head), stream=stream)
    elif _URL.match(given):
        yield _web_source(given)
    elif path.is_dir():
        yield from _walk(path, root or path)
    elif path.exists():
        yield _file_source(path, root or path.parent)
    elif glob.has_magic(given):
        yield from _expand(given, root)
    else:
        raise InvalidInput(f"{given}: no such file or folder.")


def _web_source(given: str) -> Source:
    """A page that is not fetched yet: of its format no more is known than its name says."""
    link = resolve_link(given, path="")
    url = link.target if link else given
    known = FORMATS.get(PurePosixPath(url.partition("?")[0]).suffix.lower(), "html")
    return Source(url, known, url=url)


def _expand(pattern: str, root: Path | None) -> Iterator[Source]:
    """The matches of a glob that are not hidden; ids are relative to its part without wildcards."""
    parts = Path(pattern).parts
    fixed = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    wild = "/".join(itertools.dropwhile(lambda part: not glob.has_magic(part), parts))
    matches = sorted(each for each in fixed.glob(wild) if not _is_hidden(each, fixed))
    if not matches:
        raise InvalidInput(f"{pattern}: nothing matches.")
    for match in matches:
        if match.is_file():
            yield _file_source(match, root or fixed)
        elif match.is_dir() and "**" not in wild:
            yield from _walk(match, root or fixed)


def _is_hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)


def _walk(folder: Path, root: Path) -> Iterator[Source]:
    """The files of known formats below a folder in sorted order, hidden ones left out."""
    if is_beir_folder(folder):
        yield _file_source(folder / BEIR_CORPUS, root)
        return
    for entry in _list_folder(folder):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():  # a link can lead round in a circle
            yield from _walk(entry, root)
        elif entry.suffix.lower() in FORMATS and entry.is_file():
            yield _file_source(entry, root)


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as exc:
        raise InvalidInput(f"{folder}: cannot be listed ({exc.strerror}).") from exc


def _file_source(path: Path, root: Path) -> Source:
    try:
        # The file itself may be a link to elsewhere: its identity is where it stands.
        place = path.parent.resolve() / path.name
        external_id = place.relative_to(root.resolve()).as_posix()
    except ValueError as exc:
        raise InvalidInput(f"{path}: is not below the root {root}.") from exc
    known = FORMATS.get(path.suffix.lower())
    return Source(external_id, known or _sniff_file(path), path=path)


def _sniff_file(path: Path) -> Format:
    if not path.is_file():  # opening a named pipe would wait for ever
        return "text"
    try:
        with path.open("rb") as file:
            return sniff_format(file.read(_SNIFFED))
    except OSError:  # told when the file is read, so that the others go on
        return "text"


def sniff_format(head: bytes) -> Format:
    """The format that the first bytes of a file look like; Markdown where nothing speaks."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"%PDF-"):
        return "pdf"
    if start[:200].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    if start.startswith((b'{"', b'{ "')):
        return "jsonl"
    return "markdown"


def _refuse_same_ids(sources: Sequence[Source]) -> None:
    """Two files with one identity would overwrite each other."""
    seen: dict[str, Source] = {}
    for source in sources:
        if source.format == "jsonl":  # its lines have ids of their own
            continue
        other = seen.setdefault(source.external_id, source)
        if other is not source:
            raise InvalidInput(
                f'"{source.external_id}" is the id of both {other.name} and {source.name}.',
                hint="Name one folder that holds both, or give a common root.",
            )


def _open(source: Source) -> AbstractContextManager[BinaryIO]:
    if source.stream is not None:
        return nullcontext(source.stream)
    if source.path is None or not source.path.is_file():
        raise InvalidInput(f"{source.name}: no such file.")
    try:
        return source.path.open("rb")
    except OSError as exc:
        raise InvalidInput(f"{source.name}: cannot be read ({exc.strerror}).") from exc


def _read_bytes(source: Source) -> bytes:
    """All bytes of a source, never more than the limit."""
    with _open(source) as stream:
        try:
            data = stream.read(MAX_BYTES + 1)
        except OSError as exc:
            raise InvalidInput(f"{source.name}: cannot be read ({exc.strerror}).") from exc
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"{source.name}: larger than {MAX_BYTES // 1024**2} MiB.",
            hint="Divide it into smaller files.",
        )
    return data


def _bounded_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        if len(line) > MAX_BYTES:
            raise InvalidInput(f"{name}: line {number} is larger than {MAX_BYTES // 1024**2} MiB.")
        yield line


def _reader(known: Format) -> Callable[..., Document]:
    """The reader of a format, imported when it is first needed: some take a second to load."""
    if known == "markdown":
        from service.ingestion.markdown import read_markdown as read
    elif known == "html":
        from service.ingestion.html import read_html as read
    elif known == "pdf":
        from service.ingestion.pdf import read_pdf as read
    elif known == "restructured":
        from service.ingestion.restructured import read_restructured as read
    else:
        from service.ingestion.plain import read_plain as read
    return read
