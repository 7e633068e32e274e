"""A retrieval that is asked for, and everything about it that can be decided before searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from service.db.candidates import SearchPlan, TenantState
from service.db.tenant_settings import TENANT_SETTINGS, apply_tenant_settings
from service.errors import InvalidInput
from service.retrieval.intent import Intent, detect_intent
from service.retrieval.options import (
    RetrievalOptions,
    adapt_options,
    change_options,
    choose_depth,
    choose_pool,
    clamp_results,
    read_options,
)
from service.settings import Settings
from service.types import Json, SearchFilters

_WEIGHTS = frozenset({"hybrid_vector_weight", "hybrid_keyword_weight"})


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """A question, whom it is asked of, and what this call wants different from the settings.

    changes: fields of RetrievalOptions by name; they stand before the tenant's settings.
    keywords_only: embed nothing; the caller cannot, or must not.
    """

    text: str
    tenant_ids: tuple[str, ...]
    max_results: int = 5
    node_types: tuple[str, ...] | None = None
    dataset_name: str | None = None
    filters: SearchFilters = field(default_factory=SearchFilters)
    changes: Mapping[str, object] = field(default_factory=dict)
    keywords_only: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A request with its options, intent and plan."""

    request: RetrievalRequest
    options: RetrievalOptions
    intent: Intent
    plan: SearchPlan
    states: tuple[TenantState, ...]


def frame_request(
    request: RetrievalRequest, settings: Settings, *, states: Sequence[TenantState]
) -> Frame:
    """Decide options, intent and plan: the call before the tenant before the service."""
    if not request.text.strip():
        raise InvalidInput("The question is empty.")
    request = replace(request, max_results=clamp_results(request.max_results))
    own = find_shared_settings(states)
    options = read_options(apply_tenant_settings(settings, own) if own else settings)
    if _WEIGHTS & set(own) and "query_adaptive_weights" not in own:
        # They were fitted to this tenant: no intent knows better.
        options = replace(options, adaptive_weights=False)
    intent = detect_intent(request.text)
    options = adapt_options(change_options(options, request.changes), intent)
    return Frame(request, options, intent, _plan(request, options), tuple(states))


def find_shared_settings(states: Sequence[TenantState]) -> dict[str, Json]:
    """What the tenants have set of their own, where all of them have set the same."""
    own = [
        {name: value for name, value in state.settings.items() if name in TENANT_SETTINGS}
        for state in states
    ]
    return own[0] if own and all(each == own[0] for each in own) else {}


def _plan(request: RetrievalRequest, options: RetrievalOptions) -> SearchPlan:
    return SearchPlan(
        tenant_ids=request.tenant_ids,
        node_types=request.node_types,
        dataset_name=request.dataset_name,
        filters=request.filters,
        top_k=choose_depth(options, request.max_results),
        read=choose_pool(options, request.max_results),
        bm25_weight=options.bm25_weight,
        vector_weight=options.vector_weight,
        fusion=options.fusion,
        rrf_k=options.rrf_k,
        with_embeddings=True,
    )
