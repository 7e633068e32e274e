"""People who click: the further down a node stands, the fewer look at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from uuid import UUID

import numpy as np

from service.db.experiments import TriedSearch
from service.types import Experiment, Variant

SHOWN = 5
# Chance that somebody looks at a position at all: what makes clicks biased.
ATTENTION = (0.9, 0.6, 0.4, 0.3, 0.2)
CLICKED_IF_GOOD = 0.8
CLICKED_IF_BAD = 0.02


@dataclass(frozen=True, slots=True)
class World:
    """What a variant is like: where the good node stands, how long it takes, how often it fails.

    first: how often the good node stands first; else anywhere, or nowhere at all.
    """

    first: float = 0.4
    milliseconds: float = 10.0
    failing: float = 0.0


def click(chance: np.random.Generator, world: World) -> list[int]:
    """Return the positions somebody clicks, from 1."""
    good = 1 if chance.random() < world.first else int(chance.integers(2, SHOWN + 3))
    clicked = []
    for position in range(1, SHOWN + 1):
        wanted = CLICKED_IF_GOOD if position == good else CLICKED_IF_BAD
        if chance.random() < ATTENTION[position - 1] * wanted:
            clicked.append(position)
    return clicked


def simulate(seed: int, *, a: World, b: World, searches: int) -> list[TriedSearch]:
    """Return so many searches of each variant, in turn."""
    chance = np.random.default_rng(seed)
    worlds: tuple[tuple[Variant, World], ...] = (("a", a), ("b", b))
    tried = []
    for number, (variant, world) in zip(range(2 * searches), cycle(worlds), strict=False):
        failed = bool(chance.random() < world.failing)
        clicked = [] if failed else click(chance, world)
        tried.append(
            TriedSearch(
                variant=variant,
                caller=str(number % 50),
                failed=failed,
                cached=False,
                milliseconds=world.milliseconds * float(chance.lognormal(0, 0.4)),
                has_hits=not failed,
                rated=bool(clicked),
                clicked=bool(clicked),
                first_positive=clicked[0] if clicked else None,
            )
        )
    return tried


def find_click_share(world: World, *, searches: int = 20_000) -> float:
    """Return how many searches of such a variant get a click."""
    chance = np.random.default_rng(1)
    return sum(bool(click(chance, world)) for _ in range(searches)) / searches


def make_experiment(**changes: object) -> Experiment:
    """An experiment that has not ended, unless told otherwise."""
    values: dict[str, object] = {
        "tenant_id": "acme",
        "experiment_id": UUID(int=7),
        "name": "try",
        "share": 0.5,
        "settings": {"hybrid_rrf_k": 5},
        "interleaved": False,
        "started_at": datetime(2026, 1, 1, tzinfo=UTC),
        **changes,
    }
    return Experiment(**values)  # type: ignore[arg-type]
