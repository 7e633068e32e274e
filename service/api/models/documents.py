"""Documents that are handed over, and jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from service.api.models.common import Given, Name, Shown, Text
from service.types import JobState


class GivenDocument(Given):
    """A document as text; its name is its identity, and its ending tells the format."""

    name: Name = Field(examples=["guide.md"])
    content: Text = Field(min_length=1, examples=["# Guide\n\nSearch combines both."])


class GivenDocuments(Given):
    """Documents to ingest."""

    documents: list[GivenDocument] = Field(min_length=1, max_length=1000)


class ShownRejection(Shown):
    """What was left out, and why."""

    source: str
    reason: str


class ShownIngest(Shown):
    """What became of documents; nodes counts them with their sections."""

    added: int
    changed: int
    unchanged: int
    removed: int
    nodes: int
    embedded: int
    links: int
    rejected: list[ShownRejection]


class ShownJobError(Shown):
    """Why a job failed."""

    code: str
    message: str
    hint: str | None


class ShownJob(Shown):
    """Queued work: how far it is, and what came of it. `contextforge worker` does it."""

    job_id: str = Field(examples=["0199a3f1-4b7c-7d8e-9f00-112233445566"])
    kind: str = Field(examples=["ingest_documents"])
    state: JobState
    progress_done: int
    progress_total: int | None
    result: dict[str, Any] | None
    error: ShownJobError | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
