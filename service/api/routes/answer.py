"""Answers: whole as JSON, or as they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Header
from fastapi.concurrency import iterate_in_threadpool, run_in_threadpool
from fastapi.responses import Response
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import BaseModel

from service.answering import Prepared
from service.api.access import Access, FromAccess, SearchRoute, describe_headers
from service.api.describing import (
    describe_candidates,
    describe_retrieval,
    describe_summary,
    describe_timings,
)
from service.api.models.answer import (
    CitationEvent,
    ErrorEvent,
    GivenQuestion,
    MessageEvent,
    SearchResultsEvent,
    ShownAnswer,
    ShownAnswerTrace,
    ShownCitation,
    ShownSource,
)
from service.api.retrieving import Record, Retrieved, make_request, measured, note_steps, record
from service.api.state import FromServices, Services
from service.api.stopwatch import Stopwatch
from service.errors import ServiceError
from service.retrieval.request import RetrievalRequest
from service.synthesis.answer import Answer
from service.synthesis.stream import (
    AnswerEvent,
    CitationFound,
    FinalAnswer,
    MessageDelta,
    SearchResults,
    StreamError,
)

router = APIRouter(
    prefix="/v1", tags=["search"], route_class=SearchRoute, dependencies=[Depends(describe_headers)]
)
EVENT_STREAM = "text/event-stream"


@router.post(
    "/answer",
    responses={
        200: {
            "description": "The answer; with Accept: text/event-stream the events search_results, "
            "message, citation, error and final_answer, whose data is the same as the JSON.",
            "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
        }
    },
    response_model=ShownAnswer,
)
def answer(
    given: GivenQuestion,
    access: FromAccess,
    services: FromServices,
    accept: Annotated[
        str, Header(description="application/json, or text/event-stream for events.")
    ] = "application/json",
) -> ShownAnswer | Response:
    """Answer a question from what the tenant has, with citations.

    Claude writes where there is a key and the tenant's egress policy allows it; else the answer is
    made of the sources' own sentences.
    """
    work = _Work(services, access, given)
    if EVENT_STREAM in accept.lower():
        return EventSourceResponse(
            _send(work.stream()),
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )
    return work.answer()


class _Work:
    """One question on its way; made ready at once, so that what fails early is a problem."""

    def __init__(self, services: Services, access: Access, given: GivenQuestion) -> None:
        self._services = services
        self._given = given
        request = make_request(given, access)
        with measured(services, access, request, kind="answer") as stopwatch:
            self._stopwatch: Stopwatch = stopwatch
            self._ready = self._prepare(request)
            self._known = self._record(access)

    def answer(self) -> ShownAnswer:
        """Return the answer."""
        with self._stopwatch.measure("write"):
            given = self._services.answerer.answer(self._ready)
        return self._describe(given)

    def stream(self) -> Iterator[bytes]:
        """Yield the answer as events; what fails on the way is the last of them."""
        try:
            for event in self._services.answerer.stream(self._ready):
                yield _encode(event.event, self._describe_event(event))
        except ServiceError as exc:
            error = ErrorEvent(code=exc.code, message=exc.message, hint=exc.hint)
            yield _encode(StreamError.event, error)

    def _prepare(self, request: RetrievalRequest) -> Prepared:
        with self._stopwatch.measure("prepare"):
            return self._services.answerer.prepare(request, budget=self._given.token_budget)

    def _record(self, access: Access) -> Record:
        note_steps(self._ready.retrieval, self._stopwatch)
        sources = self._ready.pack.blocks if self._ready.pack is not None else ()
        return record(
            self._services,
            access,
            self._found,
            kind="answer",
            shown=[(node_id, block.score) for block in sources for node_id in block.node_ids],
            stopwatch=self._stopwatch,
        )

    @property
    def _found(self) -> Retrieved:
        return Retrieved(self._ready.request, self._ready.retrieval, None)

    def _describe(self, given: Answer) -> ShownAnswer:
        trace = ShownAnswerTrace(
            retrieval=describe_retrieval(self._ready.retrieval),
            candidates=describe_candidates(self._ready.pack),
        )
        return ShownAnswer(
            **given.to_json(),
            trace_id=str(self._known.trace_id),
            search=describe_summary(self._found, self._known),
            timings=describe_timings(self._stopwatch),
            trace=trace if self._given.explain else None,
        )

    def _describe_event(self, event: AnswerEvent) -> BaseModel:
        match event:
            case SearchResults():
                return SearchResultsEvent(
                    trace_id=str(self._known.trace_id),
                    query_type=event.query_type,
                    sources=[ShownSource.model_validate(each) for each in event.sources],
                    search=describe_summary(self._found, self._known),
                )
            case MessageDelta():
                return MessageEvent(text=event.text)
            case CitationFound():
                return CitationEvent(citation=ShownCitation.model_validate(event.citation))
            case FinalAnswer():
                return self._describe(event.answer)
            case StreamError():
                return ErrorEvent(code=event.code, message=event.message, hint=event.hint)


def _encode(name: str, data: BaseModel) -> bytes:
    return format_sse_event(data_str=data.model_dump_json(), event=name)


async def _send(events: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Hand the events on; when nobody listens any more, stop whoever writes them."""
    try:
        async for event in iterate_in_threadpool(events):
            yield event
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(_close, events)


def _close(events: Iterator[bytes]) -> None:
    close = getattr(events, "close", None)
    if close is not None:
        close()
