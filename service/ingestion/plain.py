"""Plain text: bytes into characters, paragraphs at blank lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE, Block, split_sections

_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)*")
_BOMS = (  # the longer ones first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_plain(
    data: bytes,
    *,
    external_id: str,
    size: int = DEFAULT_SIZE,
    overlap: float = DEFAULT_OVERLAP,
) -> Document:
    """A text file as a document: no headings, the file's name as its title."""
    text = decode_text(data, external_id)
    sections = split_sections(split_paragraphs(text), size=size, overlap=overlap)
    return Document(
        external_id=external_id,
        title=title_from_name(external_id),
        content=text,
        sections=sections,
    )


def decode_text(data: bytes, name: str, *, encoding: str = "utf-8") -> str:
    """The characters of a file, line ends as `\\n`; what is not text is refused by its offset."""
    mark, encoding = next(
        ((bom, known) for bom, known in _BOMS if data.startswith(bom)), (b"", encoding)
    )
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as exc:
        raise InvalidInput(
            f"{name}: byte {len(mark) + exc.start} is not valid {encoding.upper()}.",
            hint="Save the file as UTF-8, or leave it out if it is not text.",
        ) from exc
    if (found := text.find("\0")) >= 0:
        line = text.count("\n", 0, found) + 1
        offset = len(mark) + len(text[:found].encode(encoding))
        raise InvalidInput(
            f"{name}: a NUL character at byte {offset} (line {line}): a binary file.",
            hint="Give it the suffix of its format, or leave it out.",
        )
    if not text.strip():
        raise InvalidInput(f"{name}: the file is empty.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_paragraphs(text: str) -> Iterator[Block]:
    """The paragraphs of a text: what blank lines divide."""
    for paragraph in _BLANK_LINES.split(text):
        if paragraph.strip():
            yield Block("prose", paragraph.strip("\n").rstrip())


def title_from_name(external_id: str) -> str:
    """A title for a document that states none: its file's name without the suffix."""
    return PurePosixPath(external_id).stem or external_id
