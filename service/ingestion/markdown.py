"""Markdown: structure from the parser, text from the source, so nothing is rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from service.ingestion.documents import Document
from service.ingestion.links import find_markdown_links
from service.ingestion.plain import decode_text, split_paragraphs, title_from_name
from service.ingestion.split import (
    DEFAULT_OVERLAP,
    DEFAULT_SIZE,
    Block,
    BlockKind,
    split_sections,
)

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_SCALAR = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:[ \t]+([^\s\[{|>&*!].*)$", re.MULTILINE)
_KINDS: dict[str, BlockKind] = {"fence": "code", "code_block": "code", "table_open": "table"}


def read_markdown(
    data: bytes,
    *,
    external_id: str,
    size: int = DEFAULT_SIZE,
    overlap: float = DEFAULT_OVERLAP,
) -> Document:
    """A Markdown file as a document; front matter gives title, language and metadata."""
    text = decode_text(data, external_id)
    facts, body = _take_front_matter(text)
    tokens = _parser().parse(body)
    blocks = list(_find_blocks(body, tokens))
    title = facts.pop("title", None) or _first_heading(tokens) or title_from_name(external_id)
    return Document(
        external_id=external_id,
        title=title,
        content=text,
        sections=split_sections(blocks, size=size, overlap=overlap),
        links=find_markdown_links(tokens, path=external_id),
        url=facts.pop("url", None),
        lang=facts.pop("lang", None),
        metadata=facts,
    )


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _take_front_matter(text: str) -> tuple[dict[str, str], str]:
    """The one-line values of a leading YAML block, and the text without that block."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    facts = {
        key.lower(): value.strip().strip("'\"") for key, value in _SCALAR.findall(match.group(1))
    }
    return {key: value for key, value in facts.items() if value}, text[match.end() :]


def _first_heading(tokens: Sequence[Token]) -> str | None:
    """The first top-level `#` heading as plain text."""
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h1" and token.level == 0:
            return _plain_text(tokens[index + 1]) or None
    return None


def _plain_text(inline: Token) -> str:
    parts = (" " if each.type == "softbreak" else each.content for each in inline.children or ())
    return " ".join("".join(parts).split())


def _find_blocks(body: str, tokens: Sequence[Token]) -> Iterator[Block]:
    """Headings, code and tables by their lines, the lines between them as paragraphs."""
    lines = body.split("\n")
    done = 0
    for block, first, last in _find_spans(lines, tokens):
        if first >= done:
            yield from split_paragraphs("\n".join(lines[done:first]))
            yield block
            done = last
    yield from split_paragraphs("\n".join(lines[done:]))


def _find_spans(lines: Sequence[str], tokens: Sequence[Token]) -> Iterator[tuple[Block, int, int]]:
    """Each heading, code block and table with its first line and the one after its last."""
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        first, last = token.map
        if token.type == "heading_open" and token.level == 0:
            heading = _plain_text(tokens[index + 1])
            yield Block("heading", heading, int(token.tag[1:])), first, last
        elif token.type in _KINDS:
            text = "\n".join(lines[first:last]).strip("\n").rstrip()
            yield Block(_KINDS[token.type], text), first, last
