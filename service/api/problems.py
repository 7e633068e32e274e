"""Errors as RFC 9457 problem details, made in this one place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from service.api.request_ids import find_request_id
from service.errors import BodyTooLarge, InvalidInput, RateLimited, ServiceError, Unauthenticated

MEDIA_TYPE = "application/problem+json"
MOST_FLAWS = 20
_CODES = {413: BodyTooLarge.code}  # its name in the standard library differs between versions


class Flaw(BaseModel):
    """One thing that is wrong with a request, and where."""

    place: str = Field(description="Where, as a path: body.query.", examples=["body.query"])
    message: str = Field(description="What is wrong there.", examples=["Field required"])


class Problem(BaseModel):
    """What went wrong, as application/problem+json."""

    type: str = Field(description="Names the kind of problem: urn:contextforge:error:CODE.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status, repeated.")
    detail: str = Field(description="What happened this time.")
    code: str = Field(description="The kind of problem as a stable word.")
    instance: str | None = Field(
        None, description="This very request: urn:contextforge:request:ID, the ID of X-Request-ID."
    )
    hint: str | None = Field(None, description="What to do about it.")
    errors: list[Flaw] | None = Field(None, description="Every flaw of a request, where known.")


class ProblemResponse(JSONResponse):
    """A response whose body is a Problem."""

    media_type = MEDIA_TYPE

    def __init__(self, problem: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(problem.model_dump(exclude_none=True), problem.status, headers)
        self.code = problem.code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and leave its code where it is counted."""
        scope.setdefault("state", {})["problem"] = self.code
        await super().__call__(scope, receive, send)


def make_problem(error: ServiceError, status: int | None = None) -> ProblemResponse:
    """Return the response for an error, with another status where the endpoint promises one."""
    problem = _describe(error.code, status or error.status, detail=error.message, hint=error.hint)
    return ProblemResponse(problem, _list_headers(error, problem.status))


def add_handlers(app: FastAPI) -> None:
    """Let every error an endpoint raises, and every one of the framework, become a problem."""
    app.add_exception_handler(ServiceError, answer_service_error)
    app.add_exception_handler(RequestValidationError, answer_invalid_request)
    app.add_exception_handler(HTTPException, answer_http_error)


def answer_service_error(_: Request, error: Exception) -> ProblemResponse:
    """Answer any ServiceError that rises out of an endpoint."""
    assert isinstance(error, ServiceError)
    return make_problem(error)


def answer_invalid_request(_: Request, error: Exception) -> ProblemResponse:
    """Answer a request that does not fit its model; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    flaws = [
        Flaw(place=".".join(map(str, each["loc"])), message=_clean(each["msg"]))
        for each in error.errors()[:MOST_FLAWS]
    ]
    detail = "; ".join(f"{flaw.place}: {flaw.message}" for flaw in flaws[:3])
    problem = _describe(InvalidInput.code, InvalidInput.status, detail=detail, flaws=flaws)
    return ProblemResponse(problem)


def answer_http_error(_: Request, error: Exception) -> ProblemResponse:
    """Answer what the framework refuses: an unknown path, another method, a broken body."""
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    code = _CODES.get(error.status_code) or phrase.lower().replace(" ", "_").replace("-", "_")
    problem = _describe(code, error.status_code, detail=f"{error.detail}".rstrip(".") + ".")
    return ProblemResponse(problem, error.headers)


def make_internal_problem() -> ProblemResponse:
    """Return the answer to a failure nobody foresaw; what it was stands in the log alone."""
    hint = "Look at the log under the id of this request."
    return make_problem(ServiceError("Something went wrong that nobody foresaw.", hint=hint))


def _describe(
    code: str,
    status: int,
    *,
    detail: str,
    hint: str | None = None,
    flaws: Sequence[Flaw] | None = None,
) -> Problem:
    request_id = find_request_id()
    return Problem(
        type=f"urn:contextforge:error:{code}",
        title=code.replace("_", " ").capitalize(),
        status=status,
        detail=detail,
        code=code,
        instance=request_id and f"urn:contextforge:request:{request_id}",
        hint=hint,
        errors=None if flaws is None else list(flaws),
    )


def _list_headers(error: ServiceError, status: int) -> dict[str, str]:
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="contextforge"'}
    if isinstance(error, RateLimited) or status == HTTPStatus.SERVICE_UNAVAILABLE:
        return {"Retry-After": str(max(1, math.ceil(error.retry_after or 0)))}
    return {}


def _clean(message: str) -> str:
    return message.removeprefix("Value error, ")
