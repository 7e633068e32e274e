"""Cursors: where the next page starts, in a form nobody need understand."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from service.errors import InvalidInput

LONGEST = 200


def make_cursor(*place: int | str) -> str:
    """Return the cursor of a place."""
    return urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, *kinds: type) -> list[int | str] | None:
    """Return the place of a cursor whose parts are of these kinds; None without one."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(urlsafe_b64decode(padded.encode("ascii")))
    except ValueError as exc:
        raise _refuse() from exc
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise _refuse()
    return place


def _refuse() -> InvalidInput:
    return InvalidInput("This cursor is not one of ours.", hint="Take next_cursor as it is.")
