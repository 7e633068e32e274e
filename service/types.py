"""The words of the system as frozen values: nodes, links, tenants, keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Action = Literal["added", "changed", "unchanged"]
Scope = Literal["search", "ingest", "admin"]
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


@dataclass(frozen=True, slots=True)
class Hit:
    """A node that was found: BM25, raw cosine, and the fused score in [0, 1]."""

    node_id: int
    bm25_score: float
    vector_score: float | None
    combined_score: float


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node with the one score of the leg that found it."""

    node_id: int
    score: float


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
