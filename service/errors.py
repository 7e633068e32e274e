"""One family of errors, each with the HTTP status it becomes and a hint that says what to do."""

from __future__ import annotations


class ServiceError(Exception):
    """Anything the service refuses or fails at, in words a caller can act on."""

    status = 500
    code = "internal"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidInput(ServiceError):
    """The caller sent something that can never work; the message names the offending item."""

    status = 422
    code = "invalid_input"


class SettingsError(InvalidInput):
    """A setting is misspelt, impossible or contradicts another one."""

    code = "settings"


class Unauthenticated(ServiceError):
    """No API key, or one that is unknown, expired or revoked."""

    status = 401
    code = "unauthenticated"


class Forbidden(ServiceError):
    """The caller may not see or do this."""

    status = 403
    code = "forbidden"


class NotFound(ServiceError):
    """The named thing does not exist for this caller."""

    status = 404
    code = "not_found"


class Conflict(ServiceError):
    """The request contradicts what is stored, or itself."""

    status = 409
    code = "conflict"


class DatabaseUnavailable(ServiceError):
    """The database cannot be reached or did not answer in time."""

    status = 503
    code = "database_unavailable"


class DatabaseUnsuitable(ServiceError):
    """The database answers, but lacks something the service needs."""

    status = 500
    code = "database_unsuitable"


class UnsafeLogin(DatabaseUnsuitable):
    """The database login could bypass row-level security, so the service will not run with it."""

    code = "unsafe_login"


class ModelUnavailable(ServiceError):
    """An embedding or reranking model cannot be loaded."""

    status = 503
    code = "model_unavailable"
