"""One family of errors, each with the HTTP status it becomes and a hint that says what to do."""

from __future__ import annotations


class ServiceError(Exception):
    """Anything the service refuses or fails at, in words a caller can act on."""

    status = 500
    code = "internal"
    retry_after: float | None = None
    """Seconds after which the same may work, where that is known."""

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


class UrlRefused(InvalidInput):
    """A URL that is not fetched: where it leads, or what stands there, is not allowed."""

    code = "url_refused"


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


class EmbedderMismatch(Conflict):
    """A tenant's vectors are of another model than the one that embeds questions here."""

    code = "embedder_mismatch"


class RegressionRefused(Conflict):
    """A change that would make a tenant's results worse; it was prepared and not switched to."""

    code = "regression_refused"


class LeakedQuestions(Conflict):
    """Questions of an evaluation are among the few-shot examples, with their answers."""

    code = "leaked_questions"


class UnreadableMetadata(ServiceError):
    """A stored node's metadata is not what its type promises; the message names the node."""

    code = "unreadable_metadata"


class DatabaseUnavailable(ServiceError):
    """The database cannot be reached or did not answer in time."""

    status = 503
    code = "database_unavailable"
    retry_after = 1.0


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


class LlmUnavailable(ServiceError):
    """Claude could not be asked, or did not give a usable answer in time; calls that were made."""

    status = 503
    code = "llm_unavailable"
    calls = 0


class FetchFailed(ServiceError):
    """A page that may be fetched could not be had from its web server."""

    status = 502
    code = "fetch_failed"


class BodyTooLarge(ServiceError):
    """The body of a request is larger than the service takes."""

    status = 413
    code = "body_too_large"


class RateLimited(ServiceError):
    """An API key was used more often than it may; `retry_after` says when it may again."""

    status = 429
    code = "rate_limited"


class Overloaded(ServiceError):
    """More requests are in hand than this process can take on."""

    status = 503
    code = "overloaded"
    retry_after = 1.0


class ServiceUnreachable(ServiceError):
    """A client found no service, or none that answers as one."""

    status = 503
    code = "service_unreachable"


class DeadlineExceeded(ServiceError):
    """A request took longer than it may."""

    status = 504
    code = "deadline_exceeded"


class ClientGone(ServiceError):
    """Whoever asked has hung up; the answer is for the log alone."""

    status = 499
    code = "client_gone"
