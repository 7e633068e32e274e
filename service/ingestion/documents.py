"""What a reader makes of a document, whatever its format (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from service.types import Json

LinkKind = Literal["path", "url", "title"]


@dataclass(frozen=True, slots=True)
class OutLink:
    """A link as the document states it: a path in the source, a URL, or another title."""

    kind: LinkKind
    target: str


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a document that search finds: its headings, its place, its text."""

    order_index: int
    header: str | None
    section_path: str
    content: str
    token_count: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document read: identity and title, raw text, sections in order, links to others."""

    external_id: str
    title: str
    content: str
    sections: tuple[Section, ...]
    links: tuple[OutLink, ...] = ()
    url: str | None = None
    lang: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
