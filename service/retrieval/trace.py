"""What each step of a retrieval did: candidates in and out, drops with reasons, times (JSON)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from service.types import Candidate, Json


@dataclass(frozen=True, slots=True)
class Drop:
    """A node that a step left out, and why."""

    node_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step returns: the candidates it keeps, in order, and what there is to say."""

    candidates: list[Candidate]
    drops: tuple[Drop, ...] = ()
    notes: Mapping[str, Json] = field(default_factory=dict)
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class TracedCandidate:
    """A candidate in a trace: by id, with the scores it has so far."""

    node_id: int
    title: str
    score: float
    vector_score: float | None
    confidence: float | None
    bm25_score: float
    ce_score: float | None
    graph_score: float | None


@dataclass(frozen=True, slots=True)
class StepTrace:
    """One step: what went in and came out, best first, what was dropped, how long it took."""

    step: str
    milliseconds: float
    entered: tuple[TracedCandidate, ...]
    left: tuple[TracedCandidate, ...]
    drops: tuple[Drop, ...]
    notes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole retrieval as it went."""

    question: str
    steps: tuple[StepTrace, ...]
    fallbacks: tuple[str, ...]
    milliseconds: float
    cached: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the trace as plain values."""
        return asdict(self)


class Recorder:
    """Runs the steps of one retrieval and, where a trace is wanted, writes down what they did."""

    __slots__ = ("_fallbacks", "_question", "_started", "_steps", "enabled")

    def __init__(self, question: str, *, enabled: bool) -> None:
        self.enabled = enabled
        self._question = question
        self._steps: list[StepTrace] = []
        self._fallbacks: list[str] = []
        self._started = time.perf_counter()

    def run(
        self,
        step: str,
        work: Callable[[Sequence[Candidate]], StepResult],
        candidates: Sequence[Candidate] = (),
    ) -> list[Candidate]:
        """Return what the step makes of the candidates."""
        started = time.perf_counter()
        result = work(candidates)
        if result.fallback is not None:
            self._fallbacks.append(result.fallback)
        if self.enabled:
            taken = _milliseconds(started)
            self._steps.append(
                StepTrace(
                    step,
                    taken,
                    entered=_describe(candidates),
                    left=_describe(result.candidates),
                    drops=result.drops,
                    notes=result.notes,
                )
            )
        return result.candidates

    def finish(self) -> Trace | None:
        """Return the trace, or None where none was wanted."""
        if not self.enabled:
            return None
        return Trace(
            self._question, tuple(self._steps), self.fallbacks, _milliseconds(self._started)
        )

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What did not work as configured, in words."""
        return tuple(self._fallbacks)


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _describe(candidates: Sequence[Candidate]) -> tuple[TracedCandidate, ...]:
    return tuple(
        TracedCandidate(
            node_id=each.node.node_id,
            title=each.node.title,
            score=each.score,
            vector_score=each.vector_score,
            confidence=each.confidence,
            bm25_score=each.bm25_score,
            ce_score=each.ce_score,
            graph_score=each.graph_score,
        )
        for each in candidates
    )
