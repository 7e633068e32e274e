"""What a client raises, as LlmUnavailable: in one place, and without a word of the server's."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from service.errors import LlmUnavailable, ServiceError
from service.llm.deadline import Deadline

Result = TypeVar("Result")

FIRST_WAIT = 0.25
LONGEST_WAIT = 4.0

_log = logging.getLogger(__name__)
_PASSING = (408, 409, 429)
_HINTS = {
    401: "Check ANTHROPIC_API_KEY.",
    403: "Check what ANTHROPIC_API_KEY may do.",
    404: "Check the name of the model and ANTHROPIC_BASE_URL.",
    413: "Lower CONTEXT_TOKEN_BUDGET.",
    429: "Try again in a moment.",
    529: "Try again in a moment.",
}


@contextmanager
def unavailable_errors() -> Iterator[None]:
    """Turn whatever a client raises into LlmUnavailable."""
    try:
        yield
    except ServiceError:
        raise
    except Exception as exc:
        raise _explain(exc) from exc


def retry(work: Callable[[int], Result], *, end: Deadline, attempts: int) -> Result:
    """Return work(1), or work(2) ... while it fails in a way that may pass and time is left."""
    for number in range(1, attempts):
        try:
            return work(number)
        except Exception as exc:
            wait = _choose_wait(exc, number)
            if wait is None or wait >= end.remaining():
                raise
            _log.warning("Claude failed (%s); trying again in %.1f s.", _name(exc), wait)
            time.sleep(wait)
    end.check()
    return work(attempts)


def is_refusal(error: LlmUnavailable) -> bool:
    """Tell a call that Claude understood and refused from one that says Claude is not well."""
    status = _read_status(error.__cause__)
    return status is not None and not _may_pass(status)


def _choose_wait(exc: Exception, number: int) -> float | None:
    """Return how long to wait before another attempt; None if it would fail as well."""
    from anthropic import APIConnectionError, APITimeoutError

    status = _read_status(exc)
    if isinstance(exc, APITimeoutError) or not (
        isinstance(exc, APIConnectionError) or (status is not None and _may_pass(status))
    ):
        return None
    asked = _read_asked_wait(exc)
    if asked is not None:
        return asked
    wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (number - 1))
    return wait * random.uniform(0.8, 1.6)


def _may_pass(status: int) -> bool:
    return status in _PASSING or status >= 500


def _read_status(exc: BaseException | None) -> int | None:
    from anthropic import APIStatusError

    return exc.status_code if isinstance(exc, APIStatusError) else None


def _read_asked_wait(exc: Exception) -> float | None:
    # In seconds; the other form of the header, a date, is not what the Messages API sends.
    headers = getattr(getattr(exc, "response", None), "headers", {})
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, TypeError, ValueError):
        return None


def _explain(exc: Exception) -> LlmUnavailable:
    from anthropic import APIConnectionError, APITimeoutError

    status = _read_status(exc)
    if status is not None:
        return LlmUnavailable(f"Claude answered with status {status}.", hint=_HINTS.get(status))
    if isinstance(exc, APITimeoutError):
        return LlmUnavailable("Claude did not answer in time.")
    if isinstance(exc, APIConnectionError):
        return LlmUnavailable(
            "Claude could not be reached.", hint="Check the network and ANTHROPIC_BASE_URL."
        )
    if isinstance(exc, ValueError):
        return LlmUnavailable("Claude's answer could not be read.")
    return LlmUnavailable(f"The call to Claude failed ({_name(exc)}).")


def _name(exc: Exception) -> str:
    status = _read_status(exc)
    return f"status {status}" if status is not None else type(exc).__name__
