"""A hybrid search that is asked for directly: no intent, no gate, the nodes as they rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from sqlalchemy import Connection

from service.db.candidates import (
    Phrasing,
    SearchPlan,
    TenantState,
    read_tenant_states,
    search_candidates,
)
from service.db.quarantine import MARK
from service.db.tenant_settings import apply_tenant_settings
from service.embedding import Embedder
from service.errors import InvalidInput
from service.retrieval.catalog import EXAMPLE
from service.retrieval.request import find_shared_settings
from service.retrieval.search import check_embedder
from service.settings import Settings
from service.types import Candidate, Json, SearchFilters, Vector

Embedding = Vector | Sequence[float]


class OpenTransaction(Protocol):
    """Opens a transaction that may see exactly these tenants."""

    def __call__(self, tenant_ids: Sequence[str], /) -> AbstractContextManager[Connection]: ...


@dataclass(frozen=True, slots=True)
class SpecSearch:
    """What is searched for; a text without an embedding is embedded, unless vectors weigh nothing.

    Weights not given are the tenant's.
    """

    text: str
    tenant_ids: tuple[str, ...]
    node_types: tuple[str, ...] | None
    top_k: int
    dataset_name: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    acl_groups: tuple[str, ...] = ()
    min_relevance: float | None = None
    embedding: Embedding | None = None
    bm25_weight: float | None = None
    vector_weight: float | None = None

    @property
    def is_embedded_here(self) -> bool:
        """Whether the text needs a vector that the caller did not bring."""
        return self.embedding is None and self.vector_weight != 0


def search_specs(
    asked: SpecSearch,
    open_transaction: OpenTransaction,
    *,
    settings: Settings,
    embedder: Embedder | None,
) -> list[Candidate]:
    """Return the nodes by combined_score, best first; `embedder` is needed to embed here."""
    vector = None if asked.embedding is None else to_vector(asked.embedding)
    if embedder is not None:
        vector = embedder.embed_query(asked.text)
    with open_transaction(asked.tenant_ids) as connection:
        states = read_tenant_states(connection, asked.tenant_ids)
        if embedder is not None:
            check_embedder(embedder, states)
        plan = _plan(asked, settings, states=states)
        [found] = search_candidates(connection, [Phrasing(asked.text, vector)], plan=plan)
    return found


def to_vector(embedding: Embedding) -> Vector:
    """The embedding as an array; refused if it cannot be one."""
    try:
        vector = np.asarray(embedding, dtype=np.float32)
    except (TypeError, ValueError) as exc:
        raise InvalidInput("query_embedding is no list of numbers.") from exc
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise InvalidInput("query_embedding has NaN, infinite or no values, or is no plain list.")
    return vector


def _plan(asked: SpecSearch, settings: Settings, *, states: Sequence[TenantState]) -> SearchPlan:
    own = find_shared_settings(states)
    used = apply_tenant_settings(settings, own) if own else settings
    return SearchPlan(
        tenant_ids=asked.tenant_ids,
        node_types=asked.node_types,
        dataset_name=asked.dataset_name,
        filters=SearchFilters(
            acl_groups=asked.acl_groups,
            metadata=asked.metadata,
            without_metadata=MARK if EXAMPLE in (asked.node_types or ()) else {},
        ),
        top_k=asked.top_k,
        bm25_weight=_first(asked.bm25_weight, used.hybrid_keyword_weight),
        vector_weight=_first(asked.vector_weight, used.hybrid_vector_weight),
        fusion=used.hybrid_fusion,
        rrf_k=used.hybrid_rrf_k,
        min_relevance=asked.min_relevance,
    )


def _first(given: float | None, usual: float) -> float:
    return usual if given is None else given
