"""Makes links and images in an answer inactive (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_IMAGE = re.compile(r"!\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^)]*\)")
_DEFINITION = re.compile(r"^[ ]{0,3}\[[^\]\n]+\]:[ \t]*\S+.*$\n?", re.MULTILINE)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]*:[^\s<>]*)>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|area|audio|base|button|embed|form|frame|iframe|image|img|input|link|meta|object|"
    r"picture|script|source|style|svg|track|video)\b(?:[^<>]{0,2000}>|[^<>\n]*)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:(http|https|ftp)://|www\.)[^\s<>\"'`]*", re.IGNORECASE)
_TRAILING = ".,;:!?)]}*_"
_BROKEN = {"http": "hxxp", "https": "hxxps", "ftp": "fxp"}


@dataclass(frozen=True, slots=True)
class Inactive:
    """A text in which nothing can be followed or loaded, and how much was changed for it."""

    text: str
    removed: int


def deactivate_links(text: str, *, known: str) -> Inactive:
    """Leave the words of links and images; an address stays as text where the sources have it."""
    removed, count = 0, 1
    # Taking one out may join the halves of another.
    while count:
        text, count = _unwrap(text)
        removed += count
    addresses = [match[0] for match in _ADDRESS.finditer(text)]
    broken = [each for each in addresses if each.rstrip(_TRAILING) not in known]
    return Inactive(
        _ADDRESS.sub(lambda match: _break(match) if match[0] in broken else match[0], text),
        removed + len(broken),
    )


def _unwrap(text: str) -> tuple[str, int]:
    total = 0
    for pattern, put in _WRAPPED:
        text, count = pattern.subn(put, text)
        total += count
    return text, total


def _keep_label(match: re.Match[str]) -> str:
    # A number is a citation, whatever it was made to point at.
    return f"[{match[1]}]" if match[1].isdigit() else match[1]


def _break(match: re.Match[str]) -> str:
    scheme = match[1]
    if scheme is None:
        return f"www[.]{match[0][4:]}"
    return f"{_BROKEN[scheme.lower()]}{match[0][len(scheme) :]}"


_WRAPPED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (_IMAGE, r"\1"),
    (_DEFINITION, ""),
    (_TAG, ""),
    (_AUTOLINK, r"\1"),
    (_LINK, _keep_label),
)
