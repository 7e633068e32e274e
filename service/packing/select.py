"""Which candidates are worth packing and in which order, whatever the budget (pure).

Nothing here knows the budget: an item's value is fixed when it is chosen. So a larger budget keeps
the same items and adds to them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from service.packing.copies import find_copies
from service.packing.item import DocKey, Item, SectionKey
from service.packing.rules import PackingRules
from service.packing.similarity import measure_repetition, measure_similarity
from service.packing.types import Reason

# The chance that an item answers falls by a factor of e with so much less relevance. Its value is
# that chance a token: as a logarithm, relevance - CHANCE_SCALE * ln(tokens).
CHANCE_SCALE = 0.05
# Below so many tokens shortness is no merit: stubs would win by it.
SHORT_TOKENS = 200
# A piece next to a chosen one of its section is let in beside it if it is nearly as relevant:
# then the answer may span both.
SPAN_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Choice:
    """An item that is worth packing, what it was worth then, and how new it was."""

    item: Item
    value: float
    novelty: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that is left out whatever the budget."""

    item: Item
    reason: Reason
    detail: str
    other: int | None = None
    novelty: float = 1.0


@dataclass(slots=True)
class _Caps:
    """How many of each document and section are in, and which."""

    per_doc: int
    per_section: int
    docs: Counter[DocKey] = field(default_factory=Counter)
    sections: dict[SectionKey, list[Item]] = field(default_factory=dict)

    def refuse(self, item: Item) -> Refusal | None:
        """Refuse an item whose document or section has had its share."""
        if self.docs[item.doc_key] >= self.per_doc:
            detail = f"{self.per_doc} of its document are in already"
            return Refusal(item, "per_doc_cap", detail)
        inside = self.sections.get(item.section_key, []) if item.section_key else []
        if len(inside) >= self.per_section and not any(_spans(item, other) for other in inside):
            detail = f"{self.per_section} of its section already in, none beside it"
            return Refusal(item, "per_section_cap", detail, inside[0].node_id)
        return None

    def let_in(self, item: Item) -> None:
        """Count an item."""
        self.docs[item.doc_key] += 1
        if item.section_key is not None:
            self.sections.setdefault(item.section_key, []).append(item)


def select_items(items: Sequence[Item], rules: PackingRules) -> tuple[list[Choice], list[Refusal]]:
    """Choose greedily by relevance and novelty under the caps; return the choices by value.

    Items come best first. Of copies the first is tried; the next only where a cap refuses it.
    """
    similarity = measure_similarity(
        [item.candidate.embedding for item in items], [item.body for item in items]
    )
    repetition = measure_repetition(similarity)
    families = {members[0]: members for members in find_copies(items, similarity)}
    relevance = np.full(len(items), -np.inf)
    for place in families:
        relevance[place] = items[place].relevance
    repeated = np.zeros(len(items))
    caps = _Caps(rules.per_doc_cap, rules.per_section_cap)
    choices: list[Choice] = []
    refusals: list[Refusal] = []
    while families:
        marginal = relevance - rules.novelty_alpha * repeated
        place, *copies = families.pop(int(marginal.argmax()))
        relevance[place] = -np.inf
        item, novelty = items[place], 1 - float(repeated[place])
        refusal = caps.refuse(item)
        if refusal is not None:
            refusals.append(replace(refusal, novelty=novelty))
            if copies:
                families[copies[0]] = copies
                relevance[copies[0]] = items[copies[0]].relevance
            continue
        caps.let_in(item)
        choices.append(Choice(item, _price(float(marginal[place]), item.tokens), novelty))
        refusals += [_refuse_copy(items[copy], item, similarity[place, copy]) for copy in copies]
        np.maximum(repeated, repetition[place], out=repeated)
    choices.sort(key=lambda choice: -choice.value)  # stable: equals stay in order of choice
    return choices, refusals


def _refuse_copy(item: Item, other: Item, cosine: float) -> Refusal:
    detail = f"cosine {cosine:.2f}, the same words but for small changes"
    return Refusal(item, "near_duplicate", detail, other.node_id, novelty=0.0)


def _price(marginal: float, tokens: int) -> float:
    return marginal - CHANCE_SCALE * math.log(max(tokens, SHORT_TOKENS) / SHORT_TOKENS)


def _spans(item: Item, other: Item) -> bool:
    """Whether two pieces of a section stand side by side and are nearly as relevant."""
    place, beside = item.candidate.node.order_index, other.candidate.node.order_index
    if place is None or beside is None or abs(place - beside) != 1:
        return False
    return item.relevance >= SPAN_SHARE * other.relevance
