"""Searching: what is asked, what was found, and how honestly it can be called an answer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from service.api.models.common import (
    DatasetName,
    Given,
    Metadata,
    Name,
    NodeTypes,
    Question,
    Share,
    Shown,
    Timing,
)

SearchMode = Literal["hybrid", "keywords", "vectors"]
Band = Literal["high", "good", "partial", "low"]
TRACE_EXAMPLE = "1f0c9a52-6f0b-4f3e-9d57-3f1f6c1f2a10"


class GivenFilters(Given):
    """What a search keeps beyond dataset and node types; groups come from the key."""

    lang: Name | None = Field(None, description="ISO code of the language.", examples=["en"])
    space_id: Name | None = Field(None, description="The space of the nodes.", examples=[None])
    docs: list[Name] = Field(
        default_factory=list, max_length=100, description="External ids of articles to stay in."
    )
    metadata: Metadata = Field(default_factory=dict, examples=[{}])


class GivenOptions(Given):
    """What this call wants different from the settings of the tenant; all may be left out."""

    bm25_weight: Share | None = Field(None, description="Weight of the keyword leg.")
    vector_weight: Share | None = Field(None, description="Weight of the vector leg.")
    fusion: Literal["rrf", "convex"] | None = Field(None, description="Fuse by ranks or scores.")
    rrf_k: int | None = Field(None, ge=1, le=1000, description="Rank constant of rrf.")
    adaptive_weights: bool | None = Field(None, description="Let the intent choose the weights.")
    multi_query: bool | None = Field(
        None, description="Ask Claude for other phrasings; the tenant's egress policy decides."
    )
    confidence_threshold: Share | None = Field(
        None, description="Best calibrated cosine below which nothing is used."
    )
    reranker: Literal["none", "mmr", "crossencoder"] | None = Field(None)
    rerank_topk: int | None = Field(None, ge=1, le=50, description="Nodes kept after reranking.")
    mmr_alpha: Share | None = Field(None, description="Relevance against diversity in mmr.")
    walk_weight: Share | None = Field(None, description="Weight of the walk along links; 0: none.")
    graph_prior_weight: Share | None = Field(None, description="Weight of PageRank; 0: none.")
    multidoc: bool | None = Field(None, description="Take the best sections of several articles.")
    num_docs: int | None = Field(None, ge=1, le=20, description="Articles with multidoc.")
    max_sections: int | None = Field(None, ge=1, le=20, description="Sections of each article.")
    min_relevance: Share | None = Field(None, description="Sections below it are skipped.")
    quality_threshold: Share | None = Field(None, description="Quality below which a node leaves.")

    @model_validator(mode="after")
    def _check_weights(self) -> GivenOptions:
        if self.bm25_weight == 0 and self.vector_weight == 0:
            raise ValueError("bm25_weight and vector_weight must not both be 0")
        return self


class GivenSearch(Given):
    """A search."""

    query: Question
    max_results: int = Field(10, ge=1, le=20, description="Most nodes to return.")
    dataset_name: DatasetName | None = Field(None, examples=[None])
    node_types: NodeTypes | None = Field(None, examples=[None])
    filters: GivenFilters = Field(default_factory=GivenFilters)
    options: GivenOptions = Field(default_factory=GivenOptions)
    explain: bool = Field(False, description="Add what each step did, and each term's part.")


class ShownNode(Shown):
    """A stored node."""

    node_id: int = Field(examples=[42])
    tenant_id: str = Field(examples=["acme"])
    external_id: str = Field(examples=["guide.md#search"])
    dataset_name: str = Field(examples=["docs"])
    node_type: str = Field(examples=["section"])
    title: str = Field(examples=["Guide"])
    summary: str = Field(examples=[""])
    content: str = Field(examples=["Search combines keywords and vectors."])
    metadata: dict[str, Any] = Field(examples=[{}])
    parent_id: int | None = Field(examples=[41])
    section_path: str | None = Field(examples=["Guide > Search"])
    order_index: int | None = Field(examples=[1])
    header: str | None = Field(examples=["Search"])
    doc_title: str | None = Field(examples=["Guide"])
    url: str | None = Field(examples=[None])
    lang: str | None = Field(examples=["en"])
    space_id: str | None = Field(examples=[None])
    token_count: int | None = Field(examples=[7])


class ShownScores(Shown):
    """What a node is ranked by, and its parts; each on a scale of its own."""

    final: float = Field(description="What the result is ordered by.", examples=[0.98])
    combined: float = Field(description="The fused score of both legs, 0 to 1.", examples=[0.97])
    bm25: float = Field(description="BM25, 0 where no term matches.", examples=[4.1])
    vector: float | None = Field(description="The raw cosine.", examples=[0.61])
    confidence: float | None = Field(description="The calibrated cosine.", examples=[0.8])
    graph: float | None = Field(
        description="PageRank divided by the tenant's largest; with explain always.", examples=[0.4]
    )
    cross_encoder: float | None = Field(description="The cross-encoder's score.", examples=[None])


class ShownHit(Shown):
    """A node that was found, and why it stands where it does."""

    position: int = Field(description="From 1.", examples=[1])
    node: ShownNode
    scores: ShownScores
    relevance: float = Field(description="How well it answers, 0 to 1, absolute.", examples=[0.86])
    band: Band = Field(description="high from 0.85, good from 0.70, partial from 0.50, else low.")
    terms: dict[str, float] | None = Field(
        None, description="What each term adds to BM25; with explain.", examples=[{"bm25": 4.1}]
    )


class ShownShortfall(Shown):
    """Why fewer came back than were asked for."""

    asked: int = Field(examples=[20])
    got: int = Field(examples=[7])
    reason: str = Field(examples=["no other node holds a query term or has an embedding"])


class ShownWeights(Shown):
    """The weights that counted, after tenant and intent."""

    bm25: float = Field(examples=[0.4])
    vector: float = Field(examples=[0.6])
    walk: float = Field(examples=[0.7])


class ShownOptions(Shown):
    """The options that counted, by the names under which a call can state them."""

    bm25_weight: float = Field(examples=[0.4])
    vector_weight: float = Field(examples=[0.6])
    fusion: Literal["rrf", "convex"]
    rrf_k: int = Field(examples=[60])
    adaptive_weights: bool
    multi_query: bool
    confidence_threshold: float = Field(examples=[0.5])
    reranker: Literal["none", "mmr", "crossencoder"]
    rerank_topk: int = Field(examples=[12])
    mmr_alpha: float = Field(examples=[0.5])
    walk_weight: float = Field(examples=[0.7])
    graph_prior_weight: float = Field(examples=[0.0])
    multidoc: bool
    num_docs: int = Field(examples=[5])
    max_sections: int = Field(examples=[3])
    min_relevance: float = Field(examples=[0.7])
    quality_threshold: float = Field(examples=[0.3])


class ShownDrop(Shown):
    """A node that a step left out, and why."""

    node_id: int
    reason: str


class ShownTracedNode(Shown):
    """A node in a step, with the scores it has so far."""

    node_id: int
    title: str
    score: float
    vector_score: float | None
    confidence: float | None
    bm25_score: float
    ce_score: float | None
    graph_score: float | None


class ShownStep(Shown):
    """One step: what went in and came out, what was dropped, how long it took."""

    step: str
    milliseconds: float
    entered: list[ShownTracedNode]
    left: list[ShownTracedNode]
    drops: list[ShownDrop]
    notes: dict[str, Any]


class ShownRetrieval(Shown):
    """What each step of a retrieval did."""

    steps: list[ShownStep]
    statement: str = Field(description="The search as SQL; :embedding is the query's vector.")


class ShownSummary(Shown):
    """How a search went, in all honesty."""

    mode: SearchMode = Field(description="Which legs ran.")
    mode_reason: str | None = Field(
        None, description="Why not both.", examples=["the query has no searchable word"]
    )
    shortfall: ShownShortfall | None = Field(None, description="Set where fewer came back.")
    confidence: float | None = Field(description="Best calibrated cosine found.", examples=[0.8])
    gated: bool = Field(description="Whether that is too little to make an answer of.")
    intent: str = Field(description="What the question looks like.", examples=["definition"])
    weights: ShownWeights
    options: ShownOptions = Field(description="What counted, after service, tenant and call.")
    terms: list[str] = Field(description="The words searched for, as lexemes.", examples=[["bm25"]])
    fallbacks: list[str] = Field(description="What did not work as configured.", examples=[[]])
    cached: bool = Field(description="Whether this was asked a moment ago and nothing changed.")


class ShownSearch(ShownSummary):
    """What a search found."""

    trace_id: str = Field(description="For feedback and /v1/traces.", examples=[TRACE_EXAMPLE])
    hits: list[ShownHit]
    timings: list[Timing]
    trace: ShownRetrieval | None = Field(None, description="With explain.")
