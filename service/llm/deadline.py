"""A total deadline: work that does not end in time is left behind, whatever it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import TypeVar

from service.errors import LlmUnavailable

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, and the seconds that were allowed until then."""

    seconds: float
    moment: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that many seconds from now."""
        return cls(seconds, time.monotonic() + seconds)

    def remaining(self) -> float:
        """Return the seconds left, never less than zero."""
        return max(0.0, self.moment - time.monotonic())

    def check(self) -> None:
        """Raise when it has passed."""
        if not self.remaining():
            raise self.missed()

    def missed(self) -> LlmUnavailable:
        """Return the error that says so."""
        return LlmUnavailable(f"Claude did not answer within {self.seconds:g} seconds.")


def start_work(work: Callable[[], None]) -> None:
    """Run work on a thread of its own, which nobody waits for at exit."""
    Thread(target=copy_context().run, args=(work,), name="claude", daemon=True).start()


def run_within(deadline: Deadline, work: Callable[[], Result]) -> Result:
    """Return what the work returns; LlmUnavailable when it is not done by the deadline."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as exc:  # noqa: BLE001 - it is raised again where it is waited for
            future.set_exception(exc)

    start_work(run)
    try:
        return future.result(deadline.remaining())
    except TimeoutError as exc:
        # A TimeoutError of the work itself is told apart by the future being done.
        if future.done():
            raise
        raise deadline.missed() from exc
