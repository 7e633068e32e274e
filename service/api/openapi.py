"""The OpenAPI document: what FastAPI makes, with the problems every endpoint may answer."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from service.api.models.answer import CitationEvent, ErrorEvent, MessageEvent, SearchResultsEvent
from service.api.models.documents import GivenDocuments
from service.api.problems import MEDIA_TYPE, Problem

DESCRIPTION = (
    "Hybrid retrieval for tenants: search, contexts within a token budget, and answers with "
    "citations. Send an API key as a bearer token; every error is a problem of RFC 9457."
)
_REF = "#/components/schemas/{model}"
_PROBLEMS = {
    "400": "The body cannot be read.",
    "401": "No valid API key.",
    "403": "The key may not do this, or not for this tenant.",
    "404": "There is no such thing for this tenant.",
    "409": "It contradicts what is stored.",
    "413": "The body is too large.",
    "415": "The body is of another kind than expected.",
    "422": "The request can never work as it is.",
    "429": "The key was used too often; see Retry-After.",
    "500": "Something failed that nobody foresaw.",
    "503": "The database or a model is not there, or too many ask at once; see Retry-After.",
    "504": "It took too long.",
}
_LISTED = (
    Problem,
    GivenDocuments,
    SearchResultsEvent,
    MessageEvent,
    CitationEvent,
    ErrorEvent,
)
_UNUSED = ("HTTPValidationError", "ValidationError")


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
        )
        schemas = document["components"]["schemas"]
        for name in _UNUSED:
            schemas.pop(name, None)
        document["components"]["schemas"] = {**_list_schemas(), **schemas}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                _add_problems(operation, guarded=path.startswith("/v1/"))
        app.openapi_schema = document
    return app.openapi_schema


def _add_problems(operation: dict[str, Any], *, guarded: bool) -> None:
    responses = operation["responses"]
    for status in [*responses]:
        if status[0] in "45":
            responses[status] = _problem(responses[status]["description"])
    if guarded:
        responses |= {status: _problem(text) for status, text in _PROBLEMS.items()}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model=Problem.__name__)}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


def _list_schemas() -> dict[str, Any]:
    """Return the schemas that no endpoint's signature names."""
    _, listed = models_json_schema(
        [(model, "serialization") for model in _LISTED], ref_template=_REF
    )
    schemas: dict[str, Any] = listed["$defs"]
    return schemas
