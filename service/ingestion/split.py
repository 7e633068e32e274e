"""Documents into sections: at headings first, then by tokens (pure).

Within a section the text is cut into units that stay whole where they can: a paragraph, a code
block, a table. Units are packed in order; a chunk after the first starts with a little of the text
before it. A chunk is always one span of its section's text, so nothing is lost or reordered.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from semantic_text_splitter import TextSplitter

from service.errors import InvalidInput
from service.ingestion.documents import Section
from service.tokens import count_tokens

DEFAULT_SIZE = 400
DEFAULT_OVERLAP = 0.12
MIN_SIZE = 32
MAX_SIZE = 8000
MAX_OVERLAP = 0.15
PATH_SEPARATOR = " > "

BlockKind = Literal["heading", "prose", "code", "table"]

# The splitter's time grows with the square of the text it is given: 16 s for a megabyte without
# line ends. Windows of this many characters keep it linear; packing joins their ends again.
_WINDOW = 6_000
_MAX_TOKEN = 128  # characters of the longest o200k token: so far back an overlap can reach
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\S{1,60}")
_SENTENCE_END = re.compile(r"[.!?…:;。！？]['\")\]]*\s+|[。！？]|\n\s*")  # noqa: RUF001 - CJK stops


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document as a reader sees it; a heading has a level from 1."""

    kind: BlockKind
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class _Unit:
    """A span of a section's text that is kept whole; overlap may start inside if it is open."""

    start: int
    end: int
    tokens: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """A heading's own text: the blocks below it, down to the next heading."""

    headings: tuple[str, ...]
    blocks: tuple[Block, ...]


def split_sections(
    blocks: Iterable[Block], *, size: int = DEFAULT_SIZE, overlap: float = DEFAULT_OVERLAP
) -> tuple[Section, ...]:
    """The sections of a document in order, none above `size` tokens; overlap is a share of it."""
    check_limits(size, overlap)
    sections: list[Section] = []
    for part in _divide_at_headings(blocks):
        for content in _split_part(part.blocks, size=size, shared=int(size * overlap)):
            sections.append(
                Section(
                    order_index=len(sections),
                    header=part.headings[-1] if part.headings else None,
                    section_path=PATH_SEPARATOR.join(part.headings),
                    content=content,
                    token_count=count_tokens(content),
                )
            )
    return tuple(sections)


def check_limits(size: int, overlap: float) -> None:
    """Refuse a chunk size or an overlap that cannot work."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise InvalidInput(f"a section size of {size} tokens is not in {MIN_SIZE}..{MAX_SIZE}.")
    if not 0 <= overlap <= MAX_OVERLAP:
        raise InvalidInput(f"an overlap of {overlap} is not in 0..{MAX_OVERLAP}.")


def _divide_at_headings(blocks: Iterable[Block]) -> Iterator[_Part]:
    """The text between headings; a heading with nothing below it is its own text."""
    stack: list[Block] = []
    below: list[Block] = []
    for block in blocks:
        if not block.text.strip():
            continue
        if block.kind != "heading":
            below.append(block)
            continue
        yield from _close_part(stack, below, next_level=block.level)
        below = []
        while stack and stack[-1].level >= block.level:
            stack.pop()
        stack.append(block)
    yield from _close_part(stack, below, next_level=0)


def _close_part(stack: Sequence[Block], below: list[Block], *, next_level: int) -> Iterator[_Part]:
    """What the current heading holds; one that only introduces deeper headings holds nothing."""
    headings = tuple(" ".join(heading.text.split()) for heading in stack)
    if below:
        yield _Part(headings, tuple(below))
    elif stack and next_level <= stack[-1].level:
        yield _Part(headings, (Block("prose", stack[-1].text),))


def _split_part(blocks: Sequence[Block], *, size: int, shared: int) -> Iterator[str]:
    """The chunks of one heading's text, each at most `size` tokens, `shared` of them repeated."""
    text = "\n\n".join(block.text.strip("\r\n").rstrip() for block in blocks)
    if len(text) <= size * _MAX_TOKEN and count_tokens(text) <= size:
        yield text.strip() if blocks[0].kind == "prose" else text
        return
    units = list(_cut_units(text, blocks, size=size, room=size - shared))
    first = 0
    while first < len(units):
        limit = size - shared if first else size
        last = _pack(text, units, first=first, limit=limit)
        start = units[first].start
        if first and shared:
            end = units[last].end
            before = _pick_before(units, first=first, shared=shared)
            start = _start_overlap(text, before, (start, end), limits=(shared, size))
        yield text[start : units[last].end]
        first = last + 1


def _cut_units(text: str, blocks: Sequence[Block], *, size: int, room: int) -> Iterator[_Unit]:
    """The spans that stay whole: blocks that fit, else lines of code and tables, else sentences."""
    offset = 0
    for block in blocks:
        end = offset + len(block.text.strip("\r\n").rstrip())
        is_prose = block.kind == "prose"
        whole = _measure(text, offset, end, is_open=block.kind != "code")
        if end - offset <= size * _MAX_TOKEN and whole.tokens <= (room if is_prose else size):
            yield whole
        elif is_prose:
            yield from _cut_prose(text, offset, end, room=room)
        else:
            yield from _cut_lines(text, offset, end, room=room)
        offset = end + 2


def _measure(text: str, start: int, end: int, *, is_open: bool) -> _Unit:
    return _Unit(start, end, count_tokens(text[start:end]), is_open)


def _cut_lines(text: str, start: int, end: int, *, room: int) -> Iterator[_Unit]:
    """A code block or table too large for one chunk: its lines, cut further only if they must."""
    for line in text[start:end].splitlines(keepends=True):
        if line.strip():
            unit = _measure(text, start, start + len(line.rstrip()), is_open=False)
            if unit.tokens <= room:
                yield unit
            else:
                yield from _cut_prose(text, start, unit.end, room=room)
        start += len(line)


def _cut_prose(text: str, start: int, end: int, *, room: int) -> Iterator[_Unit]:
    """Pieces of at most `room` tokens that end at paragraphs, sentences or words if they can."""
    while start < end:
        stop = _end_window(text, start, end)
        for offset, piece in _splitter(room).chunk_indices(text[start:stop]):
            if piece.strip():
                begin = start + offset
                yield _measure(text, begin, begin + len(piece), is_open=True)
        start = stop


def _end_window(text: str, start: int, end: int) -> int:
    """Where a window of text may end: at a line, a sentence or a word, in its second half."""
    if end - start <= _WINDOW:
        return end
    middle, limit = start + _WINDOW // 2, start + _WINDOW
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, middle, limit)
        if found > 0:
            return found + len(mark)
    return limit


@lru_cache(maxsize=16)
def _splitter(room: int) -> TextSplitter:
    return TextSplitter.from_callback(count_tokens, room)


def _pack(text: str, units: Sequence[_Unit], *, first: int, limit: int) -> int:
    """The last unit that fits into a chunk that begins with `first`; at least that one."""
    last, tokens = first, units[first].tokens
    while last + 1 < len(units) and tokens + units[last + 1].tokens <= limit:
        last += 1
        tokens += units[last].tokens
    # The tokens of a text are not the sum of its parts' (the line ends between them count too).
    start = units[first].start
    too_long = bisect_left(
        range(first + 1, last + 1),
        True,
        key=lambda unit: count_tokens(text[start : units[unit].end]) > limit,
    )
    last = first + too_long
    while last > first and count_tokens(text[start : units[last].end]) > limit:
        last -= 1
    return last


def _pick_before(units: Sequence[_Unit], *, first: int, shared: int) -> list[_Unit]:
    """The units an overlap can reach back into, up to a closed one that is larger than it."""
    picked: list[_Unit] = []
    tokens = 0
    for index in range(first - 1, -1, -1):
        unit = units[index]
        if not unit.is_open and tokens + unit.tokens > shared:
            break
        picked.append(unit)
        tokens += unit.tokens
        if tokens >= shared:
            break
    return picked[::-1]


def _start_overlap(
    text: str, before: Sequence[_Unit], span: tuple[int, int], *, limits: tuple[int, int]
) -> int:
    """Where a chunk begins with its overlap: at a sentence if one is near, else at a word."""
    (start, end), (shared, size) = span, limits
    starts = [place for unit in before for place in _places(text, unit, shared)]
    fits = [*starts, start]
    chosen = bisect_left(fits, True, key=lambda place: count_tokens(text[place:start]) <= shared)
    while chosen < len(starts) and (
        count_tokens(text[starts[chosen] : start].rstrip()) > shared
        or count_tokens(text[starts[chosen] : end]) > size
    ):
        chosen += 1
    if chosen >= len(starts):
        return start
    return _prefer_sentence(text, starts[chosen:], start)


def _places(text: str, unit: _Unit, shared: int) -> Iterator[int]:
    """Where an overlap may begin within a unit: at its words, or only at its start."""
    if not unit.is_open:
        yield unit.start
        return
    earliest = max(unit.start, unit.end - shared * _MAX_TOKEN)
    for match in _WORD.finditer(text, earliest, unit.end):
        yield match.start()


def _prefer_sentence(text: str, starts: Sequence[int], end: int) -> int:
    """The first start of a sentence in the first half of an overlap, else the first start."""
    first = starts[0]
    half = first + (end - first) // 2
    known = set(starts)
    for match in _SENTENCE_END.finditer(text, max(0, first - 8), half):
        if match.end() >= first and match.end() in known:
            return match.end()
    return first
