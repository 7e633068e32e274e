"""Every request of the API: how it is built, and how its response is read (pure)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service.api.models.answer import GivenQuestion, ShownAnswer
from service.api.models.common import Given
from service.api.models.context import GivenContext, ShownContext
from service.api.models.documents import GivenDocument, GivenDocuments, ShownIngest, ShownJob
from service.api.models.nodes import (
    GivenGraph,
    GivenLink,
    GivenLinks,
    GivenNode,
    GivenNodes,
    ShownDeletedNodes,
    ShownGraph,
    ShownNodes,
    ShownSimilarNodes,
    ShownStoredLinks,
    ShownStoredNodes,
)
from service.api.models.records import (
    GivenFeedback,
    ShownEgress,
    ShownFeedback,
    ShownTrace,
)
from service.api.models.search import (
    GivenFilters,
    GivenOptions,
    GivenSearch,
    ShownNode,
    ShownSearch,
)
from service.api.models.stats import ShownStats
from service.api.models.text_to_sql import (
    GivenExamples,
    GivenFields,
    GivenSchemaContext,
    ShownExamples,
    ShownFields,
    ShownSchemaContext,
)
from service.errors import InvalidInput
from service.types import Json, Signal

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
Parameter = str | int | bool | Sequence[str] | None
_UNSAFE_IN_FILE_NAMES = frozenset('"\\')


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and what its response is read as."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    body: Given | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    files: Mapping[str, bytes] | None = None

    def describe(self) -> dict[str, Any]:
        """Return the request as arguments of httpx."""
        described: dict[str, Any] = {
            "method": self.method,
            "url": self.path,
            "params": {name: each for name, each in self.parameters.items() if each is not None},
        }
        if self.body is not None:
            described["json"] = self.body.model_dump(mode="json", exclude_unset=True)
        if self.files is not None:
            described["files"] = [("file", (name, each)) for name, each in self.files.items()]
        return described

    def turn_to(self, cursor: str) -> Call[T]:
        """Return the same request for another page."""
        return replace(self, parameters={**self.parameters, "cursor": cursor})


# --- search ---------------------------------------------------------------------------------------


def search(
    query: str,
    *,
    max_results: int = 10,
    dataset_name: str | None = None,
    node_types: Sequence[str] | None = None,
    filters: GivenFilters | None = None,
    options: GivenOptions | None = None,
    explain: bool = False,
) -> Call[ShownSearch]:
    """Find nodes by keywords, meaning and links."""
    body = _give(
        GivenSearch,
        query=query,
        max_results=max_results,
        dataset_name=dataset_name,
        node_types=node_types,
        filters=filters,
        options=options,
        explain=explain,
    )
    return Call("POST", "/v1/search", _as(ShownSearch), body)


def build_context(
    query: str,
    *,
    max_results: int = 5,
    token_budget: int | None = None,
    dataset_name: str | None = None,
    node_types: Sequence[str] | None = None,
    filters: GivenFilters | None = None,
    options: GivenOptions | None = None,
    explain: bool = False,
) -> Call[ShownContext]:
    """Find nodes and pack them into a token budget."""
    body = _give(
        GivenContext,
        query=query,
        max_results=max_results,
        token_budget=token_budget,
        dataset_name=dataset_name,
        node_types=node_types,
        filters=filters,
        options=options,
        explain=explain,
    )
    return Call("POST", "/v1/context", _as(ShownContext), body)


def answer(
    query: str,
    *,
    max_results: int = 5,
    dataset_name: str | None = None,
    node_types: Sequence[str] | None = None,
    filters: GivenFilters | None = None,
    options: GivenOptions | None = None,
    explain: bool = False,
) -> Call[ShownAnswer]:
    """Answer a question from what the tenant has."""
    body = _give(
        GivenQuestion,
        query=query,
        max_results=max_results,
        dataset_name=dataset_name,
        node_types=node_types,
        filters=filters,
        options=options,
        explain=explain,
    )
    return Call("POST", "/v1/answer", _as(ShownAnswer), body)


# --- documents and nodes --------------------------------------------------------------------------


def store_documents(
    documents: Mapping[str, str | bytes], *, dataset_name: str = "default", wait: bool = True
) -> Call[ShownIngest | ShownJob]:
    """Store documents, texts or files, by their names; large ones are queued and give a job."""
    parameters: dict[str, Parameter] = {"dataset_name": dataset_name, "wait": wait}
    texts = [
        _give(GivenDocument, name=name, content=content)
        for name, content in documents.items()
        if isinstance(content, str)
    ]
    if len(texts) == len(documents):
        body = _give(GivenDocuments, documents=texts)
        return Call("POST", "/v1/documents", _read_stored, body, parameters)
    files = {
        _check_file_name(name): content.encode() if isinstance(content, str) else content
        for name, content in documents.items()
    }
    return Call("POST", "/v1/documents", _read_stored, None, parameters, files)


def read_job(job_id: str) -> Call[ShownJob]:
    """Say how far a job is, and what came of it."""
    return Call("GET", f"/v1/jobs/{_quote(job_id)}", _as(ShownJob))


def list_nodes(
    *,
    dataset_name: str | None = None,
    node_types: Sequence[str] | None = None,
    metadata: Mapping[str, Json] | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> Call[ShownNodes]:
    """Read a page of nodes, by node_id."""
    parameters: dict[str, Parameter] = {
        "dataset_name": dataset_name,
        "node_type": node_types,
        "metadata": None if metadata is None else json.dumps(metadata),
        "limit": limit,
        "cursor": cursor,
    }
    return Call("GET", "/v1/nodes", _as(ShownNodes), None, parameters)


def read_node(node_id: int) -> Call[ShownNode]:
    """Read one node."""
    return Call("GET", f"/v1/nodes/{int(node_id)}", _as(ShownNode))


def list_similar_nodes(
    node_id: int,
    *,
    max_results: int = 10,
    node_types: Sequence[str] | None = None,
    dataset_name: str | None = None,
) -> Call[ShownSimilarNodes]:
    """Find nodes like a stored one."""
    parameters: dict[str, Parameter] = {
        "max_results": max_results,
        "node_type": node_types,
        "dataset_name": dataset_name,
    }
    path = f"/v1/nodes/{int(node_id)}/similar"
    return Call("GET", path, _as(ShownSimilarNodes), None, parameters)


def store_nodes(
    nodes: Sequence[GivenNode],
    *,
    dataset_name: str = "default",
    embedder_version: str | None = None,
) -> Call[ShownStoredNodes]:
    """Add or change a batch of nodes: all of it, or nothing."""
    body = _give(
        GivenNodes, nodes=nodes, dataset_name=dataset_name, embedder_version=embedder_version
    )
    return Call("PUT", "/v1/nodes", _as(ShownStoredNodes), body)


def delete_nodes(
    external_ids: Sequence[str], *, dataset_name: str = "default"
) -> Call[ShownDeletedNodes]:
    """Delete nodes with everything below them."""
    parameters: dict[str, Parameter] = {"external_id": external_ids, "dataset_name": dataset_name}
    return Call("DELETE", "/v1/nodes", _as(ShownDeletedNodes), None, parameters)


def store_links(
    links: Sequence[GivenLink], *, dataset_name: str = "default"
) -> Call[ShownStoredLinks]:
    """Add or change a batch of links: all of it, or nothing."""
    body = _give(GivenLinks, links=links, dataset_name=dataset_name)
    return Call("POST", "/v1/links", _as(ShownStoredLinks), body)


def read_graph(node_ids: Sequence[int], *, max_nodes: int = 40) -> Call[ShownGraph]:
    """Read the links around some nodes."""
    body = _give(GivenGraph, node_ids=node_ids, max_nodes=max_nodes)
    return Call("POST", "/v1/graph", _as(ShownGraph), body)


# --- text to SQL ----------------------------------------------------------------------------------


def find_fields(
    query: str,
    *,
    dataset_name: str | None = None,
    max_results: int = 10,
    min_relevance: float | None = None,
) -> Call[ShownFields]:
    """Find the database columns that fit a question."""
    body = _give(
        GivenFields,
        query=query,
        dataset_name=dataset_name,
        max_results=max_results,
        min_relevance=min_relevance,
    )
    return Call("POST", "/v1/fields", _as(ShownFields), body)


def find_examples(
    query: str,
    *,
    dataset_name: str | None = None,
    max_results: int = 5,
    verified: bool | None = None,
    min_relevance: float | None = None,
) -> Call[ShownExamples]:
    """Find questions like this one, with the SQL that answers them."""
    body = _give(
        GivenExamples,
        query=query,
        dataset_name=dataset_name,
        max_results=max_results,
        verified=verified,
        min_relevance=min_relevance,
    )
    return Call("POST", "/v1/examples", _as(ShownExamples), body)


def build_schema_context(
    query: str,
    *,
    dataset_name: str,
    token_budget: int | None = None,
    format: Literal["ddl", "json"] = "ddl",  # noqa: A002 - the word of the contract
) -> Call[ShownSchemaContext]:
    """Write a schema for a prompt, within a token budget."""
    body = _give(
        GivenSchemaContext,
        query=query,
        dataset_name=dataset_name,
        token_budget=token_budget,
        format=format,
    )
    return Call("POST", "/v1/schema-context", _as(ShownSchemaContext), body)


# --- records --------------------------------------------------------------------------------------


def read_trace(trace_id: str) -> Call[ShownTrace]:
    """Read what was shown, by the trace_id that came with it."""
    return Call("GET", f"/v1/traces/{_quote(trace_id)}", _as(ShownTrace))


def give_feedback(
    trace_id: str | None,
    signal: Signal,
    *,
    query: str | None = None,
    node_id: int | None = None,
    note: str | None = None,
) -> Call[ShownFeedback]:
    """Say what a person thinks of what was shown, or of one node of it.

    trace_id: None where the query is given instead, for the caller's newest search of it.
    """
    body = _give(
        GivenFeedback, trace_id=trace_id, query=query, signal=signal, node_id=node_id, note=note
    )
    return Call("POST", "/v1/feedback", _as(ShownFeedback), body)


def read_stats(*, hours: int = 24) -> Call[ShownStats]:
    """Read how the tenant's searches of the last hours went, and how much it stores."""
    return Call("GET", "/v1/stats", _as(ShownStats), None, {"hours": hours})


def read_egress(*, limit: int = 50, cursor: str | None = None) -> Call[ShownEgress]:
    """Read what may be sent to Claude for the tenant, and a page of what was."""
    parameters = {"limit": limit, "cursor": cursor}
    return Call("GET", "/v1/egress", _as(ShownEgress), None, parameters)


# --- inside ---------------------------------------------------------------------------------------


def _give(shape: type[Model], **fields: object) -> Model:
    """Return what is sent; what the service would refuse by its shape is refused here."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return shape.model_validate(given)
    except ValidationError as exc:
        flaws = [
            f"{'.'.join(map(str, each['loc'])) or shape.__name__}: {each['msg']}"
            for each in exc.errors(include_url=False, include_input=False)[:3]
        ]
        raise InvalidInput("; ".join(flaws)) from exc


def _as(shape: type[Model]) -> Callable[[httpx.Response], Model]:
    return lambda response: shape.model_validate_json(response.content)


def _read_stored(response: httpx.Response) -> ShownIngest | ShownJob:
    queued = response.status_code == httpx.codes.ACCEPTED
    return (ShownJob if queued else ShownIngest).model_validate_json(response.content)


def _check_file_name(name: str) -> str:
    """Return a name that a form carries unchanged: it is the document's identity."""
    if not name.isprintable() or _UNSAFE_IN_FILE_NAMES & set(name):
        raise InvalidInput(
            f"{name!r} cannot name a file of a form.",
            hint='Leave out ", \\ and characters that do not print.',
        )
    return name


def _quote(part: str) -> str:
    """Return a part of a path; a stray / must not lead elsewhere."""
    if not part or not part.replace("-", "").isalnum() or not part.isascii():
        raise InvalidInput(f"{part!r} is no id.")
    return part
