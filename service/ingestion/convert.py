"""Documents and rows as nodes: what is written together, in one transaction (pure)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    """Nodes that are stored together, with what they refer and link to.

    Rows have places, one a node: where some are bad, the others are stored without them. Nodes
    without places are stored all or none. `linking` are the nodes whose links are replaced.
    """

    source: str
    nodes: tuple[NodeDraft, ...]
    references: tuple[Reference, ...] = ()
    links: tuple[LinkDraft, ...] = ()
    linking: tuple[str, ...] = ()
    embeddings: tuple[Vector | None, ...] | None = None
    places: tuple[str, ...] = ()
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

    def pick(self, chosen: Sequence[int]) -> NodeGroup:
        """The group of these rows alone, by their positions in it."""
        nodes = tuple(self.nodes[each] for each in chosen)
        names = {node.external_id for node in nodes}
        return replace(
            self,
            source=self.places[chosen[0]] if len(chosen) == 1 else self.source,
            nodes=nodes,
            references=tuple(each for each in self.references if each.source in names),
            embeddings=self.embeddings and tuple(self.embeddings[each] for each in chosen),
            places=tuple(self.places[each] for each in chosen),
        )

    def halve(self) -> tuple[NodeGroup, NodeGroup]:
        """Its rows in two groups; a row stands in the first if one of the second is below it."""
        depths = _depths(self.nodes)
        order = sorted(range(len(self.nodes)), key=depths.__getitem__)
        middle = len(order) // 2
        return self.pick(order[:middle]), self.pick(order[middle:])


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
    links = [Reference(document.external_id, link.kind, link.target) for link in document.links]
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
            places=tuple(f"{source}, line {row.line}" for row in batch),
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
    links: dict[str, list[LinkDraft]] = {table: [] for table in tables}
    for link in made.links:
        links[owner[link.source]].append(link)
    for table, nodes in tables.items():
        names = tuple(node.external_id for node in nodes)
        yield NodeGroup(f"{table}, foreign keys", (), links=tuple(links[table]), linking=names)


def group_examples(
    source: str, examples: Sequence[Example], *, size: int = 500
) -> Iterator[NodeGroup]:
    """Examples, some hundred at a time."""
    nodes = example_nodes(examples)
    for start in range(0, len(nodes), size):
        batch = nodes[start : start + size]
        numbers = range(start + 1, start + len(batch) + 1)
        yield NodeGroup(
            f"{source}, example {numbers[0]} to {numbers[-1]}",
            batch,
            places=tuple(f"{source}, example {number}" for number in numbers),
        )


def _row_references(row: NodeRow) -> list[Reference]:
    source = row.draft.external_id
    return [Reference(source, "path", target) for target in row.links] or [Reference(source)]


def _depths(nodes: Sequence[NodeDraft]) -> list[int]:
    """How many of these nodes stand above each; in a circle, which is refused later, any number."""
    parents = {node.external_id: node.parent for node in nodes}
    depths = []
    for node in nodes:
        above: set[str] = set()
        parent = node.parent
        while parent in parents and parent not in above:
            above.add(parent)
            parent = parents[parent]
        depths.append(len(above))
    return depths


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
