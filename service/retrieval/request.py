"""A retrieval that is asked for, and everything about it that can be decided before searching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from service.db.candidates import SearchPlan, TenantState
from service.db.tenant_settings import TENANT_SETTINGS, apply_tenant_settings
from service.errors import InvalidInput
from service.retrieval.experiment import Assignment, assign_variant
from service.retrieval.intent import detect_intent
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
from service.types import Intent, Json, SearchFilters

_WEIGHTS = frozenset({"hybrid_vector_weight", "hybrid_keyword_weight"})


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """A question, whom it is asked of, and what this call wants different from the settings.

    changes: fields of RetrievalOptions by name; they stand before the tenant's settings.
    keywords_only: embed nothing; the caller cannot, or must not.
    caller: who asks; without one a search takes part in no experiment.
    """

    text: str
    tenant_ids: tuple[str, ...]
    max_results: int = 5
    node_types: tuple[str, ...] | None = None
    dataset_name: str | None = None
    filters: SearchFilters = field(default_factory=SearchFilters)
    changes: Mapping[str, object] = field(default_factory=dict)
    keywords_only: bool = False
    caller: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A request with its options, intent and plan; rival: variant b of an interleaved search."""

    request: RetrievalRequest
    options: RetrievalOptions
    intent: Intent
    plan: SearchPlan
    states: tuple[TenantState, ...]
    assignment: Assignment | None = None
    rival: Frame | None = None

    @property
    def walks(self) -> bool:
        """Whether the links are walked: somebody wants it, and there are some."""
        return may_walk(self.options, self.states)


def frame_request(
    request: RetrievalRequest, settings: Settings, *, states: Sequence[TenantState]
) -> Frame:
    """Decide options, intent and plan: the call before the tenant before the service.

    What a running experiment tries out stands between the call and the tenant.
    """
    if not request.text.strip():
        raise InvalidInput("The question is empty.")
    request = replace(request, max_results=clamp_results(request.max_results))
    assignment = find_assignment(request, states)
    if assignment is None or assignment.variant != "interleaved":
        return _frame(request, settings, states=states, assignment=assignment)
    ours, theirs = (
        _frame(request, settings, states=states, assignment=replace(assignment, variant=variant))
        for variant in ("a", "b")
    )
    return replace(ours, assignment=assignment, rival=theirs)


def find_assignment(request: RetrievalRequest, states: Sequence[TenantState]) -> Assignment | None:
    """Return the variant of a request of one tenant that has an experiment running."""
    running = [each.experiment for each in states if each.experiment is not None]
    if request.caller is None or len(states) != 1 or not running:
        return None
    return assign_variant(running[0], caller=request.caller, text=request.text)


def _frame(
    request: RetrievalRequest,
    settings: Settings,
    *,
    states: Sequence[TenantState],
    assignment: Assignment | None,
) -> Frame:
    own = find_shared_settings(states)
    if assignment is not None and assignment.variant == "b":
        own = {**own, **_keep_known(assignment.settings)}
    intent = detect_intent(request.text)
    options = choose_options(settings, own, intent=intent, changes=request.changes)
    plan = _plan(request, options, walks=may_walk(options, states))
    return Frame(request, options, intent, plan, tuple(states), assignment=assignment)


def choose_options(
    settings: Settings,
    own: Mapping[str, Json],
    *,
    intent: Intent,
    changes: Mapping[str, object] | None = None,
) -> RetrievalOptions:
    """Return the options of a question of this intent, for a tenant with these settings."""
    used = apply_tenant_settings(settings, own) if own else settings
    options = replace(read_options(used), adaptive_weights=_may_adapt(used, own=own, intent=intent))
    changed = change_options(options, changes or {})
    return adapt_options(changed, intent, fitted=used.hybrid_intent_weights.get(intent))


def _may_adapt(used: Settings, *, own: Mapping[str, Json], intent: Intent) -> bool:
    """Whether the intent may choose the weights: what was fitted to the tenant comes first."""
    if "query_adaptive_weights" in own:
        return used.query_adaptive_weights
    if "hybrid_intent_weights" in own and intent in used.hybrid_intent_weights:
        return True
    return used.query_adaptive_weights and not _WEIGHTS & set(own)


def find_shared_settings(states: Sequence[TenantState]) -> dict[str, Json]:
    """What the tenants have set of their own, where all of them have set the same."""
    own = [_keep_known(state.settings) for state in states]
    return own[0] if own and all(each == own[0] for each in own) else {}


def _keep_known(settings: Mapping[str, Json]) -> dict[str, Json]:
    """What an earlier release could store and this one no longer knows is not in force."""
    return {name: value for name, value in settings.items() if name in TENANT_SETTINGS}


def may_walk(options: RetrievalOptions, states: Sequence[TenantState]) -> bool:
    """Whether a walk can find anything at all."""
    return options.walk_weight > 0 and any(state.has_links for state in states)


def _plan(request: RetrievalRequest, options: RetrievalOptions, *, walks: bool) -> SearchPlan:
    return SearchPlan(
        tenant_ids=request.tenant_ids,
        node_types=request.node_types,
        dataset_name=request.dataset_name,
        filters=request.filters,
        top_k=choose_depth(options, request.max_results, walks=walks),
        read=choose_pool(options, request.max_results),
        bm25_weight=options.bm25_weight,
        vector_weight=options.vector_weight,
        fusion=options.fusion,
        rrf_k=options.rrf_k,
        with_embeddings=True,
    )
