"""Spending the budget: items by value while they fit, then the pieces beside them (pure)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.packing.copies import Wording
from service.packing.layout import Draft, add_node, belongs, count_layout, make_draft
from service.packing.render import make_body
from service.packing.select import Choice
from service.packing.trim import trim_text
from service.tokens import CountTokens
from service.types import Node

Neighbours = Mapping[int, Sequence[Node]]


@dataclass(frozen=True, slots=True)
class Filled:
    """The blocks, how many of the choices they hold, and what one choice more would have taken."""

    drafts: list[Draft]
    kept: int
    wanted: int | None = None


def fill_budget(
    choices: Sequence[Choice], *, budget: int, joining: bool, count: CountTokens
) -> Filled:
    """Take the choices in order while they fit: the least valuable are those that leave.

    The first that does not fit ends it. Taking a smaller one behind it instead would cost that
    one its place when the budget grows.
    """
    drafts: list[Draft] = []
    for kept, choice in enumerate(choices):
        node = choice.item.candidate.node
        grown = add_node(drafts, node, joining=joining, count=count)
        wanted = count_layout(grown)
        if wanted > budget:
            alone = make_draft(1, [node], count=count)
            trimmed = None
            if alone.tokens > budget:
                trimmed = _trim(choice, drafts, budget=budget, count=count)
            if trimmed is None:
                return Filled(drafts, kept, wanted)
            return Filled([*drafts, trimmed], kept + 1)
        drafts = grown
    return Filled(drafts, len(choices))


def _trim(
    choice: Choice, drafts: Sequence[Draft], *, budget: int, count: CountTokens
) -> Draft | None:
    """The part of an item larger than the budget that fits beside the other blocks."""
    node = choice.item.candidate.node
    number = len(drafts) + 1

    def draft(body: str) -> Draft:
        return make_draft(number, [node], count=count, body=body)

    def fits(body: str) -> bool:
        return count_layout([*drafts, draft(body)]) <= budget

    body = trim_text(choice.item.body, at=choice.item.answer.start, fits=fits)
    return None if body is None else draft(body)


def reunite(
    drafts: list[Draft],
    choices: Sequence[Choice],
    *,
    neighbours: Neighbours,
    relevance: Mapping[int, float],
    budget: int,
    count: CountTokens,
) -> tuple[list[Draft], dict[int, int]]:
    """Attach what stands beside the packed pieces while it fits, the most relevant first.

    Returns the blocks, and the tokens that each attached node has added.
    """
    wording = Wording()
    added: dict[int, int] = {}
    waiting = _list_proposals(drafts, choices, neighbours=neighbours, relevance=relevance)
    while True:
        left = []
        for node in waiting:
            grown = _attach(drafts, node, wording=wording, budget=budget, count=count)
            if grown is None:
                left.append(node)
            else:
                added[node.node_id] = count_layout(grown) - count_layout(drafts)
                drafts = grown
        if len(left) == len(waiting):
            return drafts, added
        waiting = left  # a piece that came along may have brought the next within reach


def _list_proposals(
    drafts: Sequence[Draft],
    choices: Sequence[Choice],
    *,
    neighbours: Neighbours,
    relevance: Mapping[int, float],
) -> list[Node]:
    """The neighbours of the packed items: candidates by relevance, then the rest by whose."""
    packed = {node.node_id for draft in drafts for node in draft.nodes}
    proposals = [
        (-relevance.get(node.node_id, -math.inf), place, node.node_id, node)
        for place, choice in enumerate(choices)
        for node in neighbours.get(choice.item.node_id, ())
        if node.node_id not in packed
    ]
    ordered = sorted(proposals, key=lambda proposal: proposal[:3])
    return list({node.node_id: node for *_, node in ordered}.values())


def _attach(
    drafts: Sequence[Draft], node: Node, *, wording: Wording, budget: int, count: CountTokens
) -> list[Draft] | None:
    """The blocks with the node joined to one; None if none takes it, or it says nothing new."""
    homes = {d.number for d in drafts if not d.trimmed and belongs(node, d.nodes)}
    body = make_body(node)
    if not homes or not body:
        return None
    grown = add_node(drafts, node, joining=True, count=count)
    if count_layout(grown) > budget:
        return None
    others = (
        make_body(piece) for draft in drafts if draft.number not in homes for piece in draft.nodes
    )
    return None if any(wording.is_copy(body, other) for other in others) else grown
