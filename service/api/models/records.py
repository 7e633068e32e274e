"""What is on record: traces of what was shown, feedback on it, and what left the machine."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from service.api.models.common import Cursor, Given, NodeId, Question, Shown, Text, Timing
from service.api.models.search import TRACE_EXAMPLE
from service.types import Signal, Variant


class ShownTracedHit(Shown):
    """A node that was shown, where, and with which score."""

    position: int
    node_id: int
    score: float
    team: str | None = Field(None, description="The variant that chose it, where interleaved.")


class ShownTrace(Shown):
    """What was shown to whom, without the question's words."""

    trace_id: str = Field(examples=[TRACE_EXAMPLE])
    kind: Literal["search", "context", "answer"]
    created_at: datetime
    key_id: str
    query_sha256: str
    settings: dict[str, Any]
    hits: list[ShownTracedHit]
    timings: list[Timing]
    intent: str | None = None
    cached: bool = False
    error: str | None = Field(None, description="The code of what went wrong, if it did.")
    experiment_id: str | None = None
    variant: Variant | None = None


class GivenFeedback(Given):
    """What a person thinks of something that was shown: by its trace_id, or by its query."""

    trace_id: UUID | None = Field(
        None, description="What was shown; else give the query.", examples=[TRACE_EXAMPLE]
    )
    query: Question | None = Field(
        None, description="Instead of a trace_id: the caller's newest search.", examples=[None]
    )
    signal: Signal
    node_id: NodeId | None = Field(
        None, description="The node it is about; without it, the whole.", examples=[None]
    )
    note: Text | None = Field(None, max_length=2000, examples=[None])


class ShownFeedback(Shown):
    """Feedback that was stored."""

    feedback_id: str = Field(examples=[TRACE_EXAMPLE])
    trace_id: str = Field(examples=[TRACE_EXAMPLE])
    node_id: int | None = None
    position: int | None = Field(None, description="Where the node was shown, from 1.")
    signal: Signal


class ShownEgressCall(Shown):
    """A call to Claude; no outcome means that it is not known how it ended."""

    call_id: str
    purpose: str
    consent: str
    model: str
    text_sha256: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    attempts: int | None
    input_tokens: int | None
    output_tokens: int | None


class ShownEgress(Shown):
    """What may be sent to Claude for the tenant, and what was, newest first."""

    policy: str = Field(examples=["off"])
    changed_at: datetime | None
    calls: list[ShownEgressCall]
    next_cursor: Cursor = None
