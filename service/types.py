"""The words of the system as frozen values: nodes, links, tenants, keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Action = Literal["added", "changed", "unchanged"]
Scope = Literal["search", "ingest", "admin"]
Signal = Literal["clicked", "helpful", "not_helpful", "cited", "answer_accepted"]
Team = Literal["a", "b"]
Variant = Literal["a", "b", "interleaved"]
Intent = Literal["definition", "measurement", "procedure", "lookup", "exploratory", "other"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node as a caller gives it; external_id is its identity within tenant and dataset."""

    external_id: str
    node_type: str
    title: str = ""
    summary: str = ""
    content: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    parent: str | None = None
    parent_id: int | None = None
    section_path: str | None = None
    order_index: int | None = None
    header: str | None = None
    doc_title: str | None = None
    url: str | None = None
    lang: str | None = None
    space_id: str | None = None
    acl: Sequence[str] = ()
    token_count: int | None = None
    searchable: bool = True


@dataclass(frozen=True, slots=True)
class UpsertedNode:
    """What became of one node of a batch."""

    external_id: str
    node_id: int
    action: Action


@dataclass(frozen=True, slots=True)
class DeletedNode:
    """A node that is gone, by request or with its parent."""

    external_id: str
    node_id: int


@dataclass(frozen=True, slots=True)
class LinkDraft:
    """A directed link between two nodes, named by their external ids."""

    source: str
    target: str
    link_type: str = "link"
    weight: float = 1.0
    source_dataset: str | None = None
    target_dataset: str | None = None


@dataclass(frozen=True, slots=True)
class UpsertedLink:
    """What became of one link of a batch."""

    source_id: int
    target_id: int
    link_type: str
    action: Action


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant and how much it holds."""

    tenant_id: str
    display_name: str | None
    created_at: datetime
    nodes: int
    embedder_version: str | None


@dataclass(frozen=True, slots=True)
class AnalystGrant:
    """A database role that may read a tenant."""

    role_name: str
    tenant_id: str
    granted_at: datetime
    role_exists: bool


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as it is listed: everything but the secret."""

    key_id: str
    display_name: str
    tenant_ids: tuple[str, ...]
    scopes: tuple[str, ...]
    acl_groups: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a valid API key speaks for, and what it may do."""

    key_id: str
    tenant_ids: tuple[str, ...]
    scopes: tuple[str, ...]
    acl_groups: tuple[str, ...]


Fusion = Literal["rrf", "convex"]


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """What a search keeps beyond its tenants, node types and dataset."""

    lang: str | None = None
    space_id: str | None = None
    docs: Sequence[str] = ()
    acl_groups: Sequence[str] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    without_metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A node that was found: BM25, raw cosine, and the fused score in [0, 1]."""

    node_id: int
    bm25_score: float
    vector_score: float | None
    combined_score: float


@dataclass(frozen=True, slots=True)
class Node:
    """A stored node as it is read."""

    node_id: int
    tenant_id: str
    external_id: str
    dataset_name: str
    node_type: str
    title: str
    summary: str
    content: str
    metadata: Mapping[str, Json]
    parent_id: int | None
    section_path: str | None
    order_index: int | None
    header: str | None
    doc_title: str | None
    url: str | None
    lang: str | None
    space_id: str | None
    token_count: int | None
    content_hash: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on its way into a context; `score` is what it is ranked by, the rest its parts.

    vector_score is the raw cosine, confidence the calibrated one, graph_score the PageRank divided
    by the tenant's largest.
    """

    node: Node
    score: float
    bm25_score: float = 0.0
    vector_score: float | None = None
    confidence: float | None = None
    combined_score: float = 0.0
    ce_score: float | None = None
    graph_score: float | None = None
    embedding: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node with the one score of the leg that found it."""

    node_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Links:
    """Links between nodes as columns; one place in the three arrays is one link."""

    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankState:
    """What a tenant's stored ranks were computed from, and when."""

    tenant_id: str
    computed_at: datetime
    articles: int
    links: int
    linked_nodes: int
    largest_rank: float


@dataclass(frozen=True, slots=True)
class RankedNode:
    """A node with its PageRank among the linked nodes of its tenant."""

    node_id: int
    external_id: str
    dataset_name: str
    title: str
    rank: float
    computed_at: datetime


@dataclass(frozen=True, slots=True)
class NodeRanks:
    """PageRank of nodes divided by their tenant's largest, and the tenants left out.

    unranked: tenants whose ranks were never computed; sparse: those with too few links to rank by.
    """

    shares: Mapping[int, float]
    unranked: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    """A hit with its reasons: ranks in both legs, each term's part of BM25, relevance and band."""

    node_id: int
    bm25_rank: int | None
    vector_rank: int | None
    bm25_score: float
    vector_score: float | None
    combined_score: float
    relevance: float
    band: str
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """An explained search: its hits, the path of the vector leg, and why there are not more."""

    hits: tuple[ExplainedHit, ...]
    vector_path: str | None
    vector_rows: int | None
    shortfall: str | None


@dataclass(frozen=True, slots=True)
class Reference:
    """What a document refers to, as it states it; no kind means that it refers to nothing."""

    source: str
    kind: Literal["path", "url", "title"] | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class InlineDocument:
    """A document that is handed over whole; its name is its identity and tells the format."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed, in the words of an error of the service."""

    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """Queued work of a tenant: how far it is, and what came of it."""

    job_id: str
    tenant_id: str
    kind: str
    state: JobState
    progress_done: int
    progress_total: int | None
    result: Mapping[str, Json] | None
    error: JobError | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.finished_at is not None


EgressPurpose = Literal["expansion", "synthesis"]
EgressConsent = Literal["policy", "key"]


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What may be sent to Claude for a tenant: off, expansion, synthesis or all."""

    tenant_id: str
    policy: str
    changed_at: datetime | None

    def allows(self, purpose: EgressPurpose) -> bool:
        """Tell whether a call for this purpose may be made."""
        return self.policy in ("all", purpose)


@dataclass(frozen=True, slots=True)
class EgressCall:
    """A call to Claude as it is recorded; no outcome means that it is not known how it ended."""

    tenant_id: str
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


@dataclass(frozen=True, slots=True)
class Experiment:
    """Settings that a share of a tenant's searches tries out (variant b) beside its own (a)."""

    tenant_id: str
    experiment_id: UUID
    name: str
    share: float
    settings: Mapping[str, Json]
    interleaved: bool
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Literal["stopped", "rolled_back"] | None = None
    reason: str | None = None
