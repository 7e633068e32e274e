"""Answers, whole and as they are written."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.api.models.common import Shown, Timing
from service.api.models.context import ShownPackedCandidate, TokenBudget
from service.api.models.search import TRACE_EXAMPLE, GivenSearch, ShownRetrieval, ShownSummary


class GivenQuestion(GivenSearch):
    """A question to be answered."""

    max_results: int = Field(5, ge=1, le=20, description="Most nodes or documents to use.")
    token_budget: TokenBudget = None


class ShownCitation(Shown):
    """A source an answer refers to, with its sentences nearest to what is said."""

    number: int = Field(examples=[1])
    node_ids: list[int]
    title: str
    header: str | None
    url: str | None
    quotes: list[str]


class ShownUsage(Shown):
    """What calls to Claude cost."""

    input_tokens: int
    output_tokens: int
    api_calls: int


class ShownAnswerTrace(Shown):
    """What each step of retrieval did, and what packing did with each candidate."""

    retrieval: ShownRetrieval | None
    candidates: list[ShownPackedCandidate]


class ShownAnswer(Shown):
    """An answer, what it rests on, what it cost, and how it was made."""

    trace_id: str = Field(examples=[TRACE_EXAMPLE])
    answer: str = Field(examples=["BM25 weighs terms by how rare they are [1]."])
    mode: Literal["claude", "extractive", "gated", "degraded"] = Field(
        description="Written by Claude, the sources' own sentences, nothing relevant, or Claude "
        "failed."
    )
    notice: str | None = Field(description="Why Claude did not write it.")
    sources: list[str] = Field(description="Titles, each once.")
    citations: list[ShownCitation]
    entities: list[str]
    facts: list[str]
    cypher_query: str = Field(description="The SQL of the search; the name is that of a contract.")
    query_type: str = Field(examples=["vector_search"])
    token_usage: ShownUsage
    model: str | None
    removed_citations: int
    removed_links: int
    removed_words: int
    withheld_passages: int
    search: ShownSummary
    timings: list[Timing]
    trace: ShownAnswerTrace | None = Field(None, description="With explain.")


# --- as events ------------------------------------------------------------------------------------


class ShownSource(Shown):
    """A numbered source, before anything is written."""

    number: int
    node_ids: list[int]
    title: str
    text: str
    header: str | None
    url: str | None


class SearchResultsEvent(Shown):
    """Data of `search_results`, the first event."""

    trace_id: str
    query_type: str
    sources: list[ShownSource]
    search: ShownSummary


class MessageEvent(Shown):
    """Data of `message`: a piece of the answer."""

    text: str


class CitationEvent(Shown):
    """Data of `citation`: a source that was cited for the first time."""

    citation: ShownCitation


class ErrorEvent(Shown):
    """Data of `error`: what was written so far is void; `final_answer` still comes, if it can."""

    code: str
    message: str
    hint: str | None
