"""The numbered sources an answer is made from, cleaned of what could steer the writer (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from service.packing.types import Pack
from service.synthesis.hostile import clean_text, withhold_instructions


@dataclass(frozen=True, slots=True)
class Source:
    """One source of a context: its number in the prompt, the nodes it holds, and its text."""

    number: int
    node_ids: tuple[int, ...]
    title: str
    text: str
    header: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What may be quoted, and what was kept from the writer because it gives orders."""

    sources: tuple[Source, ...]
    withheld: tuple[str, ...] = ()

    def titles(self) -> tuple[str, ...]:
        """Return the titles of the sources, each once, in order."""
        return tuple(dict.fromkeys(source.title for source in self.sources))

    def find(self, number: int) -> Source | None:
        """Return the source of that number."""
        return next((source for source in self.sources if source.number == number), None)


def read_sources(pack: Pack) -> tuple[Source, ...]:
    """Return the blocks of a packed context as sources under the same numbers."""
    return tuple(
        Source(
            number=block.number,
            node_ids=block.node_ids,
            title=block.title,
            text=block.body,
            header=block.header,
            url=block.url,
        )
        for block in pack.blocks
    )


def clean_context(sources: Iterable[Source]) -> Context:
    """Return the sources without invisible characters and without orders to the writer."""
    kept: list[Source] = []
    withheld: list[str] = []
    for source in sources:
        text = withhold_instructions(clean_text(source.text))
        title = withhold_instructions(clean_line(source.title))
        header = withhold_instructions(clean_line(source.header or ""))
        withheld += [*title.withheld, *header.withheld, *text.withheld]
        kept.append(
            replace(
                source,
                title=title.kept or f"Source {source.number}",
                header=header.kept or None,
                text=text.kept,
            )
        )
    return Context(tuple(kept), tuple(withheld))


def clean_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(clean_text(text).split())
