"""Names and facts of an answer, taken word for word from its context (pure)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from service.retrieval.quality import STOP_WORDS
from service.synthesis.citations import Citation
from service.synthesis.context import Context

MOST = 10

_CAPITALISED = r"[A-Z][\w'\u2019-]*"
_NAME = re.compile(
    rf"(?<![.\w]){_CAPITALISED}(?:[ ](?:(?:of|for|and|the)[ ])?{_CAPITALISED})*"
    r"|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[a-z]+[A-Z]\w*\b"
)
_ARTICLE = re.compile(r"^(?:The|A|An) ")
_LINE_START = re.compile(r"(?:^|[.!?:|#*-]\s+|\n\s*)$")
_ACTIVE = re.compile(r"https?://|www\.|!\[|\]\(|<\w", re.IGNORECASE)


def find_entities(answer: str, context: Context) -> tuple[str, ...]:
    """Return names the context has and the answer speaks of, those it has most often first."""
    spoken = answer.casefold()
    counted: Counter[str] = Counter()
    for source in context.sources:
        counted.update(_find_names(source.text))
    named = [name for name, _ in counted.most_common() if name.casefold() in spoken]
    titles = [title for title in context.titles() if title.casefold() in spoken]
    return tuple(_distinct([*titles, *named]))[:MOST]


def find_facts(citations: Iterable[Citation]) -> tuple[str, ...]:
    """Return the sentences of the context that citations rest on, without any that links."""
    quotes = (quote for citation in citations for quote in citation.quotes)
    return tuple(_distinct(quote for quote in quotes if not _ACTIVE.search(quote)))[:MOST]


def _find_names(text: str) -> Iterable[str]:
    for match in _NAME.finditer(text):
        name = _ARTICLE.sub("", match[0])
        # A capital at the beginning of a sentence says nothing about a single word.
        starts = _LINE_START.search(text, max(0, match.start() - 8), match.start())
        is_word = " " not in name and name[1:].islower()
        if len(name) > 2 and name.casefold() not in STOP_WORDS and not (starts and is_word):
            yield name


def _distinct(texts: Iterable[str]) -> list[str]:
    seen: dict[str, str] = {}
    for text in texts:
        seen.setdefault(text.casefold(), text)
    return list(seen.values())
