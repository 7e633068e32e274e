"""Citations of an answer: each points at a source of the context, all others are taken out (pure).

`[1]`, `[1, 3]`, `[Source 2]` and `[Source: title]` are read; what is code is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from service.synthesis.context import Context, Source
from service.synthesis.sentences import find_keywords, split_sentences

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_MARK = re.compile(
    r"\[\^?(?P<numbers>(?:sources?:?\s*)?\d+(?:\s*[,;]\s*(?:sources?\s*)?\d+)*)\]"
    r"|\[source:?\s+(?P<title>[^\]\n]+)\]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_LEFT_SPACE = re.compile(r"(?<=\S)(?:[ \t]+(?=[.,;:!?)])|[ \t]+(?=[ \t]\S))")
_CITED = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Citation:
    """A source an answer refers to, with the sentences of it that are nearest to what is said."""

    number: int
    node_ids: tuple[int, ...]
    title: str
    header: str | None
    url: str | None
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CitedText:
    """A text whose citations all hold, and how many did not."""

    text: str
    citations: tuple[Citation, ...]
    removed: int


def check_citations(text: str, context: Context) -> CitedText:
    """Return the text with citations as [n] of sources in the context, and with no other."""
    removed = 0

    def check(match: re.Match[str]) -> str:
        nonlocal removed
        numbers = _read_mark(match, context)
        kept = [number for number in numbers if number and context.find(number)]
        removed += len(numbers) - len(kept)
        return "".join(f"[{number}]" for number in kept)

    parts = _CODE.split(text)
    checked = "".join(
        part if place % 2 else _MARK.sub(check, part) for place, part in enumerate(parts)
    )
    if removed:
        checked = _LEFT_SPACE.sub("", checked)
    return CitedText(checked.strip(), find_citations(checked, context), removed)


def find_citations(text: str, context: Context) -> tuple[Citation, ...]:
    """Return each cited source once, in the order in which they are first cited."""
    cited = (
        (source, _find_quote(source, _CITED.sub("", sentence)))
        for sentence in split_sentences(_CODE.sub("", text))
        for number in map(int, _CITED.findall(sentence))
        if (source := context.find(number)) is not None
    )
    return cite_quotes(cited)


def cite_quotes(quoted: Iterable[tuple[Source, str]]) -> tuple[Citation, ...]:
    """Return one citation a source, with its quotes, each once."""
    sources: dict[int, Source] = {}
    quotes: dict[int, dict[str, None]] = {}
    for source, quote in quoted:
        sources.setdefault(source.number, source)
        quotes.setdefault(source.number, {})[quote] = None
    return tuple(
        Citation(
            number=number,
            node_ids=source.node_ids,
            title=source.title,
            header=source.header,
            url=source.url,
            quotes=tuple(quote for quote in quotes[number] if quote),
        )
        for number, source in sources.items()
    )


def _read_mark(match: re.Match[str], context: Context) -> list[int | None]:
    if match["numbers"]:
        return [int(number) for number in _NUMBER.findall(match["numbers"])]
    title = match["title"].strip().casefold()
    named = (each.number for each in context.sources if each.title.casefold() == title)
    return [next(named, None)]


def _find_quote(source: Source, sentence: str) -> str:
    """Return the sentence of a source that has most words of this one; the first of equals."""
    words = find_keywords(sentence)
    return max(
        split_sentences(source.text),
        key=lambda each: len(words & find_keywords(each)),
        default="",
    )
