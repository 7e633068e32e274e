"""HTML: the main content by trafilatura, or all visible text where it finds none."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Protocol

from service.errors import InvalidInput
from service.ingestion.documents import Document
from service.ingestion.links import resolve_link, resolve_links
from service.ingestion.plain import decode_text, title_from_name
from service.ingestion.split import DEFAULT_OVERLAP, DEFAULT_SIZE, Block, split_sections

_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_HEAD = 4096  # bytes in which a page states its encoding
_UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object"})
_FRAME = frozenset({"nav", "footer", "aside", "form", "button", "select"})
_INLINE = frozenset(
    (
        *("a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn"),
        *("em", "font", "i", "img", "ins", "kbd", "label", "mark", "q", "s"),
        *(
            "samp",
            "small",
            "span",
            "strike",
            "strong",
            "sub",
            "sup",
            "time",
            "tt",
            "u",
            "var",
            "wbr",
        ),
    )
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


class _Element(Protocol):
    """What is used of a parsed element; lxml has no types of its own."""

    tag: object
    text: str | None
    tail: str | None

    def get(self, key: str) -> str | None: ...
    def __iter__(self) -> Iterator[_Element]: ...


@dataclass(slots=True)
class _Found:
    """What a page holds, filled while it is read."""

    blocks: list[Block] = field(default_factory=list)
    references: list[str] = field(default_factory=list)


def read_html(
    data: bytes,
    *,
    external_id: str,
    size: int = DEFAULT_SIZE,
    overlap: float = DEFAULT_OVERLAP,
) -> Document:
    """An HTML page as a document: its main text without menus, its links, its title."""
    markup = decode_text(data, external_id, encoding=_find_encoding(data))
    page = _Page()
    page.feed(markup)
    page.close()
    found = _choose(_find_main(markup), page.finish())
    if not found.blocks:
        raise InvalidInput(f"{external_id}: line 1: the page holds no text.")
    content = "\n\n".join(_as_markdown(block) for block in found.blocks)
    return Document(
        external_id=external_id,
        title=page.find_title() or title_from_name(external_id),
        content=content,
        sections=split_sections(found.blocks, size=size, overlap=overlap),
        links=resolve_links(found.references, path=external_id, text=content),
        url=page.url,
        lang=page.lang,
    )


def _find_encoding(data: bytes) -> str:
    """UTF-8 if the page is, else the encoding that it states and Python knows."""
    stated = _CHARSET.search(data[:_HEAD])
    try:
        data.decode()
    except UnicodeDecodeError:
        try:
            return codecs.lookup(stated.group(1).decode()).name if stated else "utf-8"
        except LookupError:
            return "utf-8"
    return "utf-8"


def _as_markdown(block: Block) -> str:
    return f"{'#' * block.level} {block.text}" if block.kind == "heading" else block.text


def _choose(main: _Found | None, visible: _Found) -> _Found:
    """The main content, unless it lost the page's headings: then it is a guess, not a reading."""
    if main is None:
        return visible
    has_headings = any(block.kind == "heading" for block in main.blocks)
    had_headings = any(block.level > 1 for block in visible.blocks)
    if had_headings and not has_headings:
        return visible
    # Of a short page trafilatura takes the text alone, and its links are lost.
    return main if main.references else _Found(main.blocks, visible.references)


def _find_main(markup: str) -> _Found | None:
    """The main content as trafilatura sees it; None if it finds none or the page is too deep."""
    import trafilatura

    try:
        page = trafilatura.bare_extraction(
            markup, include_comments=False, include_links=True, include_tables=True
        )
    except RecursionError:
        return None
    body: _Element | None = getattr(page, "body", None)
    if body is None:
        return None
    found = _Found()
    for element in body:
        _add_element(element, found)
    return found if found.blocks else None


def _add_element(element: _Element, found: _Found) -> None:
    """One element of the main content as a block; lists and quotes stay one each."""
    found.references.extend(_references(element))
    if element.tag == "head":
        level = _HEADINGS.get(element.get("rend") or "", 2)
        _add(found, Block("heading", " ".join(_inner_text(element).split()), level))
    elif element.tag == "code":
        code = _inner_text(element).strip("\n").rstrip()
        _add(found, Block("code", f"```\n{code}\n```" if code else ""))
    elif element.tag == "table":
        rows = (_row_text(row) for row in element if row.tag == "row")
        _add(found, Block("table", "\n".join(row for row in rows if row)))
    else:
        _add(found, Block("prose", _lines(_inner_text(element))))


def _add(found: _Found, block: Block) -> None:
    if block.text.strip():
        found.blocks.append(block)


def _row_text(row: _Element) -> str:
    return "| " + " | ".join(" ".join(_inner_text(cell).split()) for cell in row) + " |"


def _inner_text(element: _Element) -> str:
    """The text of an element and all below it, in order, without recursion."""
    parts: list[str] = []
    waiting: list[_Element | str] = [element]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            parts.append(each)
            continue
        parts.append(_opening(each) + (each.text or ""))
        for child in reversed(list(each)):
            waiting.extend((child.tail or "", child))
    return "".join(parts)


def _opening(element: _Element) -> str:
    if element.tag == "item":
        return "\n- "
    return "\n" if element.tag in {"p", "lb", "row", "quote"} else ""


def _references(element: _Element) -> Iterator[str]:
    waiting = [element]
    while waiting:
        each = waiting.pop()
        if each.tag == "ref" and (target := each.get("target")):
            yield target
        waiting.extend(reversed(list(each)))


def _lines(text: str) -> str:
    """The text with one space between words and no blank lines."""
    return "\n".join(line for raw in text.split("\n") if (line := " ".join(raw.split())))


class _Page(HTMLParser):
    """All visible text of a page, its title, address and language: needs no stack."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.url: str | None = None
        self.lang: str | None = None
        self._title = ""
        self._found = _Found()
        self._text: list[str] = []
        self._hidden: list[str] = []
        self._place = ""
        self._is_code = False

    def finish(self) -> _Found:
        """What was found, once everything is fed."""
        self._close_block()
        return self._found

    def find_title(self) -> str:
        """The first heading of the first level, else the page's title."""
        self._close_block()
        headings = (block.text for block in self._found.blocks if block.level == 1)
        return next(headings, "") or " ".join(self._title.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "html":
            self.lang = (given.get("lang") or "").split("-")[0].strip().lower() or None
        if tag == "link" and (given.get("rel") or "").lower() == "canonical":
            link = resolve_link(given.get("href") or "", path="")
            self.url = link.target if link and link.kind == "url" else self.url
        if tag in _UNSEEN | _FRAME:
            self._hidden.append(tag)
        if self._hidden:
            return
        if tag == "a" and given.get("href"):
            self._found.references.append(given["href"] or "")
        self._open_block(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            # A frame that is never closed must not hide the rest of what encloses it.
            while self._hidden.pop() != tag:
                pass
        elif not self._hidden and tag not in _INLINE:
            self._end_block(tag)

    def handle_data(self, data: str) -> None:
        if self._place == "title":
            self._title += data
        elif not self._hidden:
            self._text.append(data if self._is_code else data.replace("\n", " "))

    def _open_block(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._text.append(" | ")
        elif tag == "br":
            self._text.append("\n")
        elif tag not in _INLINE:
            if not self._is_code:
                self._close_block()
                self._place = tag
                self._is_code = tag == "pre"
            if tag == "li":
                self._text.append("- ")

    def _end_block(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._text.append(" ")
        elif not self._is_code or tag == "pre":
            self._close_block()

    def _close_block(self) -> None:
        """The text since the last block, as the kind of block that the place says."""
        text, place = "".join(self._text), self._place
        self._text.clear()
        self._place, was_code, self._is_code = "", self._is_code, False
        if was_code:
            code = text.strip("\n").rstrip()
            _add(self._found, Block("code", f"```\n{code}\n```" if code else ""))
        elif place in _HEADINGS:
            heading = Block("heading", " ".join(text.split()), _HEADINGS[place])
            _add(self._found, heading)
        elif place == "tr":
            self._add_row(" ".join(text.split()))
        else:
            _add(self._found, Block("prose", _lines(text)))

    def _add_row(self, row: str) -> None:
        """One more row of the table before it, or the first of a new one."""
        blocks = self._found.blocks
        if row and blocks and blocks[-1].kind == "table":
            blocks[-1] = Block("table", f"{blocks[-1].text}\n{row} |")
        else:
            _add(self._found, Block("table", f"{row} |" if row else ""))
