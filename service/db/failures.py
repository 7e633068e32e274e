"""SQLSTATE to error class, in the one place where it is decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from service.errors import (
    Conflict,
    DatabaseUnavailable,
    DatabaseUnsuitable,
    Forbidden,
    InvalidInput,
    NotFound,
    ServiceError,
)

_BY_STATE: dict[str, type[ServiceError]] = {
    "42501": Forbidden,  # insufficient_privilege
    "P0002": NotFound,  # no_data_found
    "23505": Conflict,  # unique_violation
    "23503": InvalidInput,  # foreign_key_violation: a parent or target the tenant does not have
    "55000": Conflict,  # object_not_in_prerequisite_state: another embedder
    "54000": InvalidInput,  # program_limit_exceeded: a text beyond the limits
    "40001": Conflict,  # serialization_failure
    "40P01": Conflict,  # deadlock_detected
    "57014": DatabaseUnavailable,  # query_canceled: statement timeout
    "55P03": DatabaseUnavailable,  # lock_not_available: lock timeout
    "53300": DatabaseUnavailable,  # too_many_connections
    "42883": DatabaseUnsuitable,  # undefined_function: not migrated
    "42P01": DatabaseUnsuitable,  # undefined_table: not migrated
    "3F000": DatabaseUnsuitable,  # invalid_schema_name: not migrated
}
_BY_CLASS: dict[str, type[ServiceError]] = {
    "08": DatabaseUnavailable,  # connection exception
    "22": InvalidInput,  # data exception
    "23": InvalidInput,  # integrity constraint violation
    "57": DatabaseUnavailable,  # operator intervention
}
_HINTS: dict[type[ServiceError], str] = {
    DatabaseUnavailable: "Check that PostgreSQL is up and DATABASE_URL is right.",
    DatabaseUnsuitable: "Run: contextforge migrate",
}


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what the driver or the pool raises into the service's own errors."""
    try:
        yield
    except PoolTimeout as exc:
        raise DatabaseUnavailable(
            "No database connection became free in time.", hint="Try again in a moment."
        ) from exc
    except DBAPIError as exc:
        raise _translate(exc.orig) from exc
    except psycopg.Error as exc:
        raise _translate(exc) from exc
    except UnicodeEncodeError as exc:  # the driver lets it through as it is
        raise InvalidInput("A text has half of a surrogate pair, which is no character.") from exc


def _translate(exc: BaseException | None) -> ServiceError:
    if not isinstance(exc, psycopg.Error):
        return ServiceError(f"The database driver failed: {exc}")
    state = exc.sqlstate or _guess_state(exc)
    error = _BY_STATE.get(state) or _BY_CLASS.get(state[:2], ServiceError)
    # The client library breaks its own messages into lines.
    message = exc.diag.message_primary or " ".join(str(exc).split()) or type(exc).__name__
    return error(_sentence(message), hint=exc.diag.message_hint or _HINTS.get(error))


def _guess_state(exc: psycopg.Error) -> str:
    """Name the state of what the driver refused by itself: only a lost connection is an outage."""
    if isinstance(exc, psycopg.DataError):
        return "22000"
    return "08000" if isinstance(exc, psycopg.OperationalError) else "XX000"


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."
