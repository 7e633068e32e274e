"""Errors as RFC 9457 problem details, made in this one place."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from service.errors import ServiceError


class Problem(BaseModel):
    """What went wrong, as application/problem+json."""

    type: str = Field(description="Names the kind of problem: urn:contextforge:error:CODE.")
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status, repeated.")
    detail: str = Field(description="What happened this time.")
    code: str = Field(description="The kind of problem as a stable word.")
    hint: str | None = Field(None, description="What to do about it.")


class ProblemResponse(JSONResponse):
    """A response whose body is a Problem."""

    media_type = "application/problem+json"


def make_problem(error: ServiceError, status: int | None = None) -> ProblemResponse:
    """Return the response for an error, with another status where the endpoint promises one."""
    problem = Problem(
        type=f"urn:contextforge:error:{error.code}",
        title=error.code.replace("_", " ").capitalize(),
        status=status or error.status,
        detail=error.message,
        code=error.code,
        hint=error.hint,
    )
    return ProblemResponse(problem.model_dump(exclude_none=True), status_code=problem.status)


def answer_service_error(_: Request, error: Exception) -> ProblemResponse:
    """Answer any ServiceError that rises out of an endpoint."""
    assert isinstance(error, ServiceError)
    return make_problem(error)
