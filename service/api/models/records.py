"""What is on record: traces of what was shown, feedback on it, and what left the machine."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from service.api.models.common import Cursor, Given, NodeId, Shown, Text, Timing
from service.api.models.search import TRACE_EXAMPLE

Signal = Literal["clicked", "helpful", "not_helpful", "cited", "answer_accepted"]


class ShownTracedHit(Shown):
    """A node that was shown, where, and with which score."""

    position: int
    node_id: int
    score: float


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


class GivenFeedback(Given):
    """What a person thinks of something that was shown."""

    trace_id: UUID = Field(examples=[TRACE_EXAMPLE])
    signal: Signal
    node_id: NodeId | None = Field(
        None, description="The node it is about; without it, the whole.", examples=[None]
    )
    note: Text | None = Field(None, max_length=2000, examples=[None])


class ShownFeedback(Shown):
    """Feedback that was stored."""

    feedback_id: str = Field(examples=[TRACE_EXAMPLE])
    trace_id: str = Field(examples=[TRACE_EXAMPLE])


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
