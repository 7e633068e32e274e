"""Blocks in the making: pieces put side by side, joined where they belong together, counted (pure).

Pieces of one section that stand side by side become one block, in document order, and what the
second repeats of the first is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from service.packing.item import DOCUMENT_TYPES
from service.packing.render import make_body, make_heading, render_block
from service.tokens import CountTokens
from service.types import Node

# A shorter match of two ends can be chance.
_LEAST_OVERLAP = 16


@dataclass(frozen=True, slots=True)
class Draft:
    """A block as it stands: its pieces in document order, its text, its tokens as rendered."""

    number: int
    nodes: tuple[Node, ...]
    heading: str
    body: str
    tokens: int
    trimmed: bool = False

    def render(self) -> str:
        """The block as it is counted."""
        return render_block(self.number, self.heading, self.body)


def count_layout(drafts: Sequence[Draft]) -> int:
    """The tokens of the rendered blocks together (see render for why they add up)."""
    return sum(draft.tokens for draft in drafts)


def add_node(
    drafts: Sequence[Draft], node: Node, *, joining: bool, count: CountTokens
) -> list[Draft]:
    """Return the blocks with one node more: in a block it belongs to, else in one of its own."""
    joined = [
        place
        for place, draft in enumerate(drafts)
        if joining and not draft.trimmed and belongs(node, draft.nodes)
    ]
    if not joined:
        return [*drafts, make_draft(len(drafts) + 1, [node], count=count)]
    nodes = [node, *(piece for place in joined for piece in drafts[place].nodes)]
    nodes.sort(key=lambda piece: piece.order_index or 0)
    first, others = joined[0], joined[1:]
    grown = list(drafts)
    grown[first] = make_draft(first + 1, nodes, count=count)
    for place in reversed(others):  # the node has closed the gap between two blocks
        del grown[place]
    return _renumber(grown, count=count) if others else grown


def make_draft(
    number: int,
    nodes: Sequence[Node],
    *,
    count: CountTokens,
    body: str | None = None,
) -> Draft:
    """Join the nodes into a block and count it; a body that is given has been trimmed."""
    text = join_bodies(make_body(node) for node in nodes) if body is None else body
    heading = make_heading(nodes[0])
    return Draft(
        number=number,
        nodes=tuple(nodes),
        heading=heading,
        body=text,
        tokens=count(render_block(number, heading, text)),
        trimmed=body is not None,
    )


def belongs(node: Node, nodes: Sequence[Node]) -> bool:
    """Whether a node stands directly before or after these pieces, in the same section."""
    first, last = nodes[0], nodes[-1]
    if node.parent_id is None or node.parent_id != first.parent_id:
        return False
    if (node.tenant_id, node.section_path) != (first.tenant_id, first.section_path):
        return False
    if not {node.node_type, first.node_type} <= DOCUMENT_TYPES:
        return False
    if node.order_index is None or first.order_index is None or last.order_index is None:
        return False
    return node.order_index in (first.order_index - 1, last.order_index + 1)


def join_bodies(bodies: Iterable[str]) -> str:
    """One text of texts that follow each other, what the next repeats left out."""
    joined = ""
    for body in bodies:
        shared = find_overlap(joined, body)
        if shared:
            joined += body[shared:]
        else:
            joined = f"{joined}\n{body}" if joined else body
    return joined


def find_overlap(before: str, after: str) -> int:
    """How many characters at the end of one text are the beginning of the other."""
    opening = after[:_LEAST_OVERLAP]
    if len(opening) < _LEAST_OVERLAP:
        return 0
    place = before.find(opening, max(0, len(before) - len(after)))
    while place >= 0:
        if after.startswith(before[place:]):
            return len(before) - place
        place = before.find(opening, place + 1)
    return 0


def _renumber(drafts: Sequence[Draft], *, count: CountTokens) -> list[Draft]:
    return [
        draft if draft.number == number else _with_number(draft, number, count=count)
        for number, draft in enumerate(drafts, start=1)
    ]


def _with_number(draft: Draft, number: int, *, count: CountTokens) -> Draft:
    moved = replace(draft, number=number)
    return replace(moved, tokens=count(moved.render()))
