"""Near-duplicates: the same text more than once, but for small changes, becomes one (pure)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from service.packing.item import Item
from service.packing.similarity import Matrix

# Copies with small changes mostly stay above this cosine. Whether they are copies, their words
# decide: two columns of one name are just as close, and differ where it matters.
COPY_COSINE = 0.85
COPY_SHARE = 0.6
# Copies come later than what they are copies of, and are about as relevant and as long.
ALIKE_SHARE = 0.9
_PROBES = 24
_PROBE_SIZE = 16  # about three words
_LONGEST_SENTENCES = 2


class Wording:
    """Compares texts by their wording; remembers those it has seen."""

    __slots__ = ("_known", "_probes")

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._probes: dict[str, list[str]] = {}

    def is_copy(self, body: str, other: str) -> bool:
        """Whether the other text says, but for small changes, all that the first says."""
        long = self.normalise(other)
        probes = self._find_probes(body)
        missing = math.floor((1 - COPY_SHARE) * len(probes))
        for probe in probes:  # most are no copies, and a few probes tell
            if probe not in long:
                missing -= 1
                if missing < 0:
                    return False
        return True

    def normalise(self, body: str) -> str:
        """A text in lower case with one space between its words, and around it."""
        known = self._known.get(body)
        if known is None:
            known = self._known[body] = f" {' '.join(body.lower().split())} "
        return known

    def _find_probes(self, body: str) -> list[str]:
        known = self._probes.get(body)
        if known is None:
            known = self._probes[body] = _choose_probes(self.normalise(body))
        return known


def find_copies(items: Sequence[Item], similarity: Matrix) -> list[list[int]]:
    """Return the places of items that say the same together, those to be preferred first.

    Of copies that are about alike, the first is the one that was stored first. Items come best
    first.
    """
    return [_put_original_first(members, items) for members in _find_families(items, similarity)]


def _put_original_first(members: list[int], items: Sequence[Item]) -> list[int]:
    best = items[members[0]]
    alike = [
        place
        for place in members
        if items[place].relevance >= ALIKE_SHARE * best.relevance
        and len(items[place].body) >= ALIKE_SHARE * len(best.body)
    ]
    first = min(alike, key=lambda place: items[place].node_id, default=members[0])
    return [first, *(place for place in members if place != first)]


def _find_families(items: Sequence[Item], similarity: Matrix) -> list[list[int]]:
    """Items by the text they share; items come best first, so each family begins with its best."""
    wording = Wording()
    close = _list_close([wording.normalise(item.body) for item in items], similarity)
    families: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        near = (other for other in close[place] if other in families)
        leader = next((o for o in near if wording.is_copy(item.body, items[o].body)), place)
        families.setdefault(leader, []).append(place)
    return list(families.values())


def _list_close(texts: Sequence[str], similarity: Matrix) -> list[list[int]]:
    """For each normalised text those before it that it may be a copy of, the closest first."""
    close = similarity >= COPY_COSINE
    # The vector of a short text has much of its title's: a copy under another title is known by
    # a sentence it shares.
    holders: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        for sentence in sorted(text.split(". "), key=len)[-_LONGEST_SENTENCES:]:
            if len(sentence) >= 2 * _PROBE_SIZE:
                close[place, holders.setdefault(sentence, [])] = True
                holders[sentence].append(place)
    listed: list[list[int]] = [[] for _ in texts]
    rows, columns = np.nonzero(np.tril(close, -1))
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        listed[row].append(column)
    for row, others in enumerate(listed):
        others.sort(key=lambda other: -similarity[row, other])
    return listed


def _choose_probes(text: str) -> list[str]:
    """A few characters in a row, from places all over a text; from every place of a short one."""
    places = max(1, len(text) - _PROBE_SIZE + 1)
    step = math.ceil(places / _PROBES)
    return [text[place : place + _PROBE_SIZE] for place in range(0, places, step)]
