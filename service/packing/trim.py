"""An item larger than the whole budget: its sentences that fit, around where the answer may be."""

from __future__ import annotations

import re
from collections.abc import Callable

from service.packing.render import ELLIPSIS

# After the stop that ends a sentence and a closing quote, at a line end, after a stop of a script
# without spaces.
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]])\s+|\n+|(?<=[。！？])"  # noqa: RUF001 - CJK stops
)


def trim_text(text: str, *, at: int, fits: Callable[[str], bool]) -> str | None:
    """Whole sentences around place `at`, marked where they were cut; None if not one fits."""
    spans = _split_sentences(text)
    first = last = next(
        (number for number, (_, end) in enumerate(spans) if at < end), len(spans) - 1
    )
    if not fits(_cut(text, spans, first, last)):
        return None
    grown = True
    while grown:  # what follows explains, so it goes first
        grown = False
        if last + 1 < len(spans) and fits(_cut(text, spans, first, last + 1)):
            last, grown = last + 1, True
        if first > 0 and fits(_cut(text, spans, first - 1, last)):
            first, grown = first - 1, True
    return _cut(text, spans, first, last)


def _split_sentences(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.start() > start:
            spans.append((start, match.start()))
        start = match.end()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _cut(text: str, spans: list[tuple[int, int]], first: int, last: int) -> str:
    body = text[spans[first][0] : spans[last][1]]
    before = f"{ELLIPSIS} " if first > 0 else ""
    after = f" {ELLIPSIS}" if last + 1 < len(spans) else ""
    return f"{before}{body}{after}"
