"""The one way in which every system is loaded, asked and timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Protocol

from benchmarks.peers.asked import AskedSet, Vectors

WARM_UP = 10
TOP_K = 20
DEEP = 100


class Searcher(Protocol):
    """A system that holds the documents of a set."""

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        ...


@dataclass(frozen=True, slots=True)
class Answers:
    """What a system answered to all questions at one depth, and how long each took."""

    p50_ms: float
    p95_ms: float
    rankings: tuple[tuple[str, ...], ...]


def ask_all(searcher: Searcher, asked: AskedSet, *, top_k: int) -> Answers:
    """Ask every question once, after some to warm up."""
    pairs = list(zip(asked.questions, asked.question_vectors, strict=True))
    for text, vector in pairs[:WARM_UP]:
        searcher.search(text, vector, top_k)
    taken, rankings = [], []
    for text, vector in pairs:
        start = time.perf_counter()
        found = searcher.search(text, vector, top_k)
        taken.append((time.perf_counter() - start) * 1000)
        rankings.append(tuple(found))
    return Answers(round(median(taken), 3), round(percentile_95(taken), 3), tuple(rankings))


def percentile_95(taken: Sequence[float]) -> float:
    """The time that 95 of 100 calls do not exceed."""
    return quantiles(taken, n=20)[-1]
