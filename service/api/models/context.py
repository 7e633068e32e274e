"""Contexts: what was packed into a token budget, and what was left out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.api.models.common import Shown, Timing
from service.api.models.search import TRACE_EXAMPLE, GivenSearch, ShownRetrieval, ShownSummary

TokenBudget = Annotated[
    int | None,
    Field(ge=1, le=200_000, description="Tokens of the context; else those of the settings."),
]


class GivenContext(GivenSearch):
    """A context that is asked for."""

    max_results: int = Field(5, ge=1, le=20, description="Most nodes or documents to pack.")
    token_budget: TokenBudget = None


class ShownPackedNode(Shown):
    """A node in a block; `reunited` came along with its neighbour."""

    node_id: int
    role: Literal["selected", "reunited"]
    score: float | None
    value: float | None


class ShownBlock(Shown):
    """One numbered source of a context."""

    number: int = Field(examples=[1])
    items: list[ShownPackedNode]
    title: str
    heading: str
    section_path: str | None
    header: str | None
    url: str | None
    body: str
    tokens: int
    score: float
    trimmed: bool


class ShownPackedCandidate(Shown):
    """What became of one candidate, and every number that led there."""

    node_id: int
    title: str
    section_path: str | None
    outcome: Literal["selected", "reunited", "dropped"]
    tokens: int
    score: float
    bonus: float
    novelty: float
    value: float | None
    block: int | None
    trimmed: bool
    reason: (
        Literal["same_node", "empty", "near_duplicate", "per_doc_cap", "per_section_cap", "budget"]
        | None
    )
    other: int | None
    detail: str | None


class ShownContext(ShownSummary):
    """A context within its budget; empty where nothing relevant was found."""

    trace_id: str = Field(examples=[TRACE_EXAMPLE])
    text: str = Field(description="Ready for a prompt; what was counted.")
    tokens: int
    budget: int
    blocks: list[ShownBlock]
    candidates: list[ShownPackedCandidate] = Field(description="Best first, dropped ones too.")
    timings: list[Timing]
    trace: ShownRetrieval | None = Field(None, description="With explain.")
