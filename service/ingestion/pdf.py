"""PDF: text by page, divided at the outline's headings, else at the pages."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pypdfium2

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.plain import split_paragraphs, title_from_name
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE, Block, split_sections

_PASSWORD_ERROR = 4  # FPDF_ERR_PASSWORD
_LINE_HYPHEN = re.compile(r"[\u0002\ufffe\u00ad]\n?")
_UNWANTED = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\uffff]")
_pdfium = threading.Lock()  # the library is not safe to use from two threads at once


@dataclass(frozen=True, slots=True)
class _Bookmark:
    """An entry of the outline: its title, depth from 1 and page from 0."""

    title: str
    level: int
    page: int


@dataclass(frozen=True, slots=True)
class _Contents:
    """What is taken out of a PDF while it is open."""

    title: str
    pages: tuple[str, ...]
    outline: tuple[_Bookmark, ...]


def read_pdf(
    data: bytes,
    *,
    external_id: str,
    size: int = DEFAULT_SIZE,
    overlap: float = DEFAULT_OVERLAP,
) -> Document:
    """A PDF as a document; one that is damaged, locked or without text is refused by its page."""
    with _pdfium:
        contents = _read_contents(data, external_id)
    if not any(page.strip() for page in contents.pages):
        raise InvalidInput(
            f"{external_id}: no text on pages 1 to {len(contents.pages)}.",
            hint="It may be scanned: run text recognition (OCR) first.",
        )
    return Document(
        external_id=external_id,
        title=contents.title or title_from_name(external_id),
        content="\n\n".join(page for page in contents.pages if page),
        sections=split_sections(_find_blocks(contents), size=size, overlap=overlap),
        metadata={"pages": len(contents.pages)},
    )


def _read_contents(data: bytes, name: str) -> _Contents:
    """The title, the text of each page and the outline."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as exc:
        if exc.err_code == _PASSWORD_ERROR:
            raise InvalidInput(
                f"{name}: the PDF is encrypted; page 1 cannot be read.",
                hint="Save it without a password.",
            ) from exc
        raise InvalidInput(f"{name}: a damaged PDF; page 1 cannot be read ({exc}).") from exc
    try:
        if not len(document):
            raise InvalidInput(f"{name}: the PDF has no page 1.")
        pages = tuple(_read_page(document, index, name) for index in range(len(document)))
        title = _clean(document.get_metadata_value("Title")).strip()
        return _Contents(title, pages, tuple(_read_outline(document)))
    finally:
        document.close()


def _read_page(document: pypdfium2.PdfDocument, index: int, name: str) -> str:
    try:
        page = document.get_page(index)
        try:
            text = page.get_textpage()
            try:
                return _clean(text.get_text_range())
            finally:
                text.close()
        finally:
            page.close()
    except (pypdfium2.PdfiumError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"{name}: page {index + 1} is damaged ({exc}).") from exc


def _read_outline(document: pypdfium2.PdfDocument) -> Iterator[_Bookmark]:
    """The outline's entries that have a title and lead to a page."""
    for entry in document.get_toc():
        target = entry.get_dest()
        page = target.get_index() if target else None
        title = " ".join(_clean(entry.get_title()).split())
        if title and page is not None and 0 <= page < len(document):
            yield _Bookmark(title, entry.level + 1, page)


def _clean(text: str) -> str:
    """Text as PDF states it without its line-end hyphens and control characters."""
    joined = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub("", _LINE_HYPHEN.sub("", joined)).strip()


def _find_blocks(contents: _Contents) -> Iterator[Block]:
    """Each page's paragraphs below the outline's headings, or below the page's number."""
    by_page: Mapping[int, list[_Bookmark]] = _group_by_page(contents.outline)
    for index, text in enumerate(contents.pages):
        if contents.outline:
            yield from _divide_page(text, by_page.get(index, []))
        elif text:
            yield Block("heading", f"Page {index + 1}", 1)
            yield from split_paragraphs(text)


def _group_by_page(outline: Sequence[_Bookmark]) -> Mapping[int, list[_Bookmark]]:
    pages: defaultdict[int, list[_Bookmark]] = defaultdict(list)
    for bookmark in outline:
        pages[bookmark.page].append(bookmark)
    return pages


def _divide_page(text: str, bookmarks: Sequence[_Bookmark]) -> Iterator[Block]:
    """A page's text, each heading where its line stands, or where the one before it ended."""
    lines = text.split("\n")
    done = 0
    for bookmark in bookmarks:
        wanted = _squeeze(bookmark.title)
        matching = (at for at in range(done, len(lines)) if _squeeze(lines[at]).endswith(wanted))
        place = next(matching, None)
        if place is not None:
            yield from split_paragraphs("\n".join(lines[done:place]))
            done = place
        yield Block("heading", bookmark.title, bookmark.level)
    yield from split_paragraphs("\n".join(lines[done:]))


def _squeeze(line: str) -> str:
    return "".join(line.split()).casefold()
