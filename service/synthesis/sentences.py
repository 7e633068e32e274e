"""Sentences and their words (pure)."""

from __future__ import annotations

import re
from itertools import pairwise

from service.retrieval.quality import STOP_WORDS

# After a full stop a new sentence begins with a capital, a digit or a quote: "e.g. this" goes on.
_END = re.compile(
    r"(?:(?<=[.!?\u3002\uff01\uff1f])|(?<=[.!?][\"'\u201d\u2019)\]]))\s+"
    r"(?=[\"'\u201c(\[]*[A-Z0-9\u0080-\uffff])"
)
# A line goes on in the next, unless that is empty or begins something: an item, a row, a heading.
_BREAK = re.compile(r"\n(?=[ \t]*(?:[-*+|#>\u2022]|\d+[.)][ \t]|```|\n|$))|(?<=\n)\n|(?<=\|)\n")
_HEADING = re.compile(r"^[ \t]*#.*$\n?", re.MULTILINE)
_WORD = re.compile(r"\w+")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each on one line; wrapped lines are joined."""
    return [" ".join(text[start:end].split()) for start, end in find_sentences(text)]


def find_sentences(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text begin and end."""
    marks = {0, len(text)}
    marks.update(match.end() for match in _BREAK.finditer(text))
    marks.update(match.end() for match in _END.finditer(text))
    marks.update(match.end() for match in _HEADING.finditer(text))
    places = sorted(marks)
    spans = pairwise(places)
    return [(start, end) for start, end in spans if text[start:end].strip()]


def find_keywords(text: str) -> frozenset[str]:
    """Return the words that carry meaning, case-folded."""
    return frozenset(_WORD.findall(text.casefold())) - STOP_WORDS
