"""Documents and rows as nodes: what is written together, in one transaction (pure)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from service.ingestion.documents import Document, Section
from service.ingestion.examples import Example, example_nodes
from service.ingestion.jsonl import NodeRow
from service.ingestion.schema_model import Schema, schema_nodes
from service.types import LinkDraft, NodeDraft, Reference, Vector

_SLUG_BREAK = re.compile(r"\W+")
_SLUG_LENGTH = 80


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are stored together or not at all, with what they refer and link to."""

    source: str
    nodes: tuple[NodeDraft, ...]
    references: tuple[Reference, ...] = ()
    links: tuple[LinkDraft, ...] = ()
    embeddings: tuple[Vector | None, ...] | None = None
    replaces_children: bool = False

    @property
    def embedded_nodes(self) -> Iterable[tuple[NodeDraft, Vector | None]]:
        """The nodes, each with the vector it brings."""
        return zip(self.nodes, self.embeddings or (None,) * len(self.nodes), strict=True)

    @property
    def open_nodes(self) -> list[NodeDraft]:
        """The nodes that search finds and that bring no vector."""
        return [node for node, given in self.embedded_nodes if node.searchable and given is None]

    @property
    def tops(self) -> tuple[str, ...]:
        """The external ids of the nodes that stand below no other."""
        return tuple(node.external_id for node in self.nodes if node.parent is None)


def group_document(document: Document) -> NodeGroup:
    """A document as an article with its sections; without sections it is searchable itself."""
    article = NodeDraft(
        document.external_id,
        "article",
        title=document.title,
        content=document.content,
        doc_title=document.title,
        url=document.url,
        lang=document.lang,
        metadata=document.metadata,
        searchable=not document.sections,
    )
    links = [
        Reference(document.external_id, link.kind, _reference_target(link.kind, link.target))
        for link in document.links
    ]
    return NodeGroup(
        source=document.external_id,
        nodes=(article, *_section_nodes(document)),
        references=tuple(links) or (Reference(document.external_id),),
        replaces_children=True,
    )


def group_rows(source: str, rows: Iterable[NodeRow], *, size: int = 500) -> Iterator[NodeGroup]:
    """Rows as they come, some hundred at a time; precomputed embeddings are kept."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        embeddings = tuple(row.embedding for row in batch)
        yield NodeGroup(
            source=f"{source}, line {batch[0].line} to {batch[-1].line}",
            nodes=tuple(row.draft for row in batch),
            references=tuple(reference for row in batch for reference in _row_references(row)),
            embeddings=embeddings if any(each is not None for each in embeddings) else None,
        )


def group_schema(schema: Schema) -> Iterator[NodeGroup]:
    """Each table with its fields; then the foreign keys, which may lead to any of them."""
    made = schema_nodes(schema)
    tables: dict[str, list[NodeDraft]] = {}
    for node in made.nodes:
        tables.setdefault(node.parent or node.external_id, []).append(node)
    for table, nodes in tables.items():
        yield NodeGroup(table, tuple(nodes), replaces_children=True)
    owner = {node.external_id: table for table, nodes in tables.items() for node in nodes}
    links: dict[str, list[LinkDraft]] = {}
    for link in made.links:
        links.setdefault(owner[link.source], []).append(link)
    for table, own in links.items():
        yield NodeGroup(f"{table}, foreign keys", (), links=tuple(own))


def group_examples(
    source: str, examples: Sequence[Example], *, size: int = 500
) -> Iterator[NodeGroup]:
    """Examples, some hundred at a time."""
    nodes = example_nodes(examples)
    for start in range(0, len(nodes), size):
        batch = nodes[start : start + size]
        yield NodeGroup(f"{source}, example {start + 1} to {start + len(batch)}", batch)


def _row_references(row: NodeRow) -> list[Reference]:
    source = row.draft.external_id
    return [Reference(source, "path", target) for target in row.links] or [Reference(source)]


def _reference_target(kind: str, target: str) -> str:
    return target.lower() if kind == "title" else target


def _section_nodes(document: Document) -> Iterator[NodeDraft]:
    seen: Counter[str] = Counter()
    for section in document.sections:
        slug = _slug(section)
        seen[slug] += 1
        # By its headings and not its place: a section put before others leaves their ids alone.
        yield NodeDraft(
            f"{document.external_id}#{slug}.{seen[slug]}",
            "section",
            title=document.title,
            content=section.content,
            parent=document.external_id,
            section_path=section.section_path,
            order_index=section.order_index,
            header=section.header,
            doc_title=document.title,
            url=document.url,
            lang=document.lang,
            token_count=section.token_count,
        )


def _slug(section: Section) -> str:
    return _SLUG_BREAK.sub("-", section.section_path.lower()).strip("-")[:_SLUG_LENGTH] or "text"
