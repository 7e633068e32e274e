"""The id of a request: the caller's, if it sent a fit one, else a new one."""

from __future__ import annotations

import re
from contextvars import ContextVar
from uuid import uuid4

HEADER = "X-Request-ID"
_FIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_CURRENT: ContextVar[str | None] = ContextVar("request_id", default=None)


def choose_request_id(sent: str | None) -> str:
    """Return the id a request has from now on, and remember it for this context."""
    request_id = sent if sent is not None and _FIT.fullmatch(sent) else uuid4().hex
    _CURRENT.set(request_id)
    return request_id


def find_request_id() -> str | None:
    """Return the id of the request in hand."""
    return _CURRENT.get()
