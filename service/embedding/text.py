"""The text that is embedded and indexed for a node (pure)."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
_HUMP_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_LETTER = re.compile(r"[A-Za-z]")


def text_to_embed(
    title: str | None, summary: str | None, content: str | None, header: str | None = None
) -> str:
    """Title, summary, header and content without the empty ones, then the identifiers' words."""
    parts = (part.strip() for part in (title, summary, header, content) if part)
    return split_identifiers(" ".join(part for part in parts if part))


def split_identifiers(text: str) -> str:
    """The text, followed by each word of its camelCase and snake_case identifiers once."""
    words: dict[str, str] = {}
    for match in _WORD.finditer(text):
        for word in _split_identifier(match.group()):
            words.setdefault(word.lower(), word)
    return f"{text} {' '.join(words.values())}" if words else text


def _split_identifier(word: str) -> list[str]:
    """The words of an identifier; none if it is an ordinary word."""
    if not word.isascii():  # identifiers are ASCII; the database's idea of upper case may differ
        return []
    parts = [part for part in word.split("_") if part]
    words = [hump for part in parts for hump in _split_humps(part)]
    return words if len(words) > 1 else []


def _split_humps(part: str) -> list[str]:
    """`customerEmail` in two; whole where a hump has one letter (`iPhone`, `mRNA`, `H2O`)."""
    humps = _HUMP_START.split(part)
    return humps if all(len(_LETTER.findall(hump)) > 1 for hump in humps) else [part]
