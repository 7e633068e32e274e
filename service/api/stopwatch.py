"""How long the steps of one request take, whoever takes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


class Stopwatch:
    """Milliseconds by step, in the order in which the steps first ended."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.steps: dict[str, float] = {}

    def add(self, step: str, milliseconds: float) -> None:
        """Count time to a step."""
        self.steps[step] = self.steps.get(step, 0.0) + milliseconds

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Count the time of a block to a step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(step, (time.perf_counter() - started) * 1000)

    def read(self) -> dict[str, float]:
        """Return every step so far, and the total."""
        total = (time.perf_counter() - self._started) * 1000
        return {name: round(taken, 3) for name, taken in {**self.steps, "total": total}.items()}


@contextmanager
def start_stopwatch() -> Iterator[Stopwatch]:
    """Measure the steps that are taken in this context."""
    stopwatch = Stopwatch()
    token = _CURRENT.set(stopwatch)
    try:
        yield stopwatch
    finally:
        _CURRENT.reset(token)


@contextmanager
def measure(step: str) -> Iterator[None]:
    """Count the time of a block to a step, where anybody measures."""
    stopwatch = _CURRENT.get()
    if stopwatch is None:
        yield
        return
    with stopwatch.measure(step):
        yield
