"""What became of a request that did not succeed: a typed error, or another attempt (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import ValidationError

from service.errors import (
    BodyTooLarge,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    ServiceError,
    ServiceUnreachable,
    Unauthenticated,
)

_RETRIED = frozenset({429, 503})
_BY_STATUS: Mapping[int, type[ServiceError]] = {
    kind.status: kind
    for kind in (
        BodyTooLarge,
        Conflict,
        DeadlineExceeded,
        Forbidden,
        InvalidInput,
        NotFound,
        RateLimited,
        Unauthenticated,
    )
}


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is made again that was told to come back, and how long that may take."""

    most: int = 2
    longest_wait: float = 10.0

    def find_wait(self, response: httpx.Response, *, made: int) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none."""
        if response.status_code not in _RETRIED or made >= self.most:
            return None
        wait = _read_retry_after(response)
        return wait if wait is not None and wait <= self.longest_wait else None


DEFAULT_RETRIES = Retries()


def read_failure(response: httpx.Response) -> ServiceError:
    """Return the error that a response stands for; it keeps the status, code and request id."""
    problem = _read_problem(response)
    status = response.status_code
    code = problem.get("code")
    detail = problem.get("detail") or f"The service answered with status {status}."
    kind = _list_kinds().get(str(code)) or _BY_STATUS.get(status, ServiceError)
    error = kind(str(detail), hint=problem.get("hint"))
    error.status = status
    error.code = str(code or error.code)
    error.retry_after = _read_retry_after(response)
    request_id = response.headers.get("x-request-id")
    if request_id:
        error.add_note(f"request id: {request_id}")
    return error


@contextmanager
def translated_failures() -> Iterator[None]:
    """Turn what goes wrong on the way to the service into errors of our own."""
    try:
        yield
    except httpx.TimeoutException as exc:
        raise ServiceUnreachable(
            "The service did not answer in time.", hint="Raise the client's timeout."
        ) from exc
    except (httpx.TransportError, httpx.InvalidURL) as exc:
        raise ServiceUnreachable(
            f"The service cannot be reached: {exc}", hint="Check its URL, and that it is up."
        ) from exc
    except ValidationError as exc:
        raise ServiceUnreachable(
            "What answered does not speak as this client expects.",
            hint="Check the URL, and that client and service are of the same version.",
        ) from exc


def _read_problem(response: httpx.Response) -> dict[str, Any]:
    """Return a problem of RFC 9457; what a proxy in between answered is none."""
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _read_retry_after(response: httpx.Response) -> float | None:
    given = response.headers.get("retry-after", "")
    return float(given) if given.isdecimal() else None


def _list_kinds(kind: type[ServiceError] = ServiceError) -> dict[str, type[ServiceError]]:
    """Return every kind of error by its code."""
    known = {kind.code: kind}
    for each in kind.__subclasses__():
        known |= _list_kinds(each)
    return known
