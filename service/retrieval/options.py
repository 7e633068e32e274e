"""Every choice of one retrieval: by the settings, the tenant's own, and what the call says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from service.errors import InvalidInput
from service.retrieval.graph import Basis
from service.retrieval.intent import PRESETS
from service.settings import Settings
from service.types import Fusion, Intent

Reranker = Literal["none", "mmr", "crossencoder"]
LEAST_POOL = 15
WALK_DEPTH = 100
MOST_RESULTS = 20
WEIGHT_NAMES = frozenset({"bm25_weight", "vector_weight"})


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What a retrieval does and with which numbers; the defaults are those of the settings."""

    k_base: int = 12
    bm25_weight: float = 0.4
    vector_weight: float = 0.6
    fusion: Fusion = "rrf"
    rrf_k: int = 60
    adaptive_weights: bool = True
    multi_query: bool = False
    confidence_threshold: float = 0.5
    reranker: Reranker = "none"
    rerank_topk: int = 12
    rerank_fallback: Literal["none", "mmr"] = "none"
    mmr_alpha: float = 0.5
    walk_weight: float = 0.7
    graph_prior: bool = False
    graph_basis: Basis = "score"
    alpha: float = 1.0
    beta: float = 0.0
    multidoc: bool = True
    num_docs: int = 5
    max_sections: int = 3
    min_relevance: float = 0.7
    quality_threshold: float = 0.3
    trace: bool = False


def read_options(settings: Settings) -> RetrievalOptions:
    """Return the options the settings describe."""
    return RetrievalOptions(
        k_base=settings.retrieval_k_base,
        bm25_weight=settings.hybrid_keyword_weight,
        vector_weight=settings.hybrid_vector_weight,
        fusion=settings.hybrid_fusion,
        rrf_k=settings.hybrid_rrf_k,
        adaptive_weights=settings.query_adaptive_weights,
        confidence_threshold=settings.context_confidence_threshold,
        reranker=settings.reranker,
        rerank_topk=settings.rerank_topk,
        rerank_fallback=settings.reranker_fallback,
        mmr_alpha=settings.mmr_alpha,
        walk_weight=settings.graph_walk_weight,
        graph_prior=settings.graph_prior_weight > 0,
        alpha=1 - settings.graph_prior_weight,
        beta=settings.graph_prior_weight,
        quality_threshold=settings.content_quality_threshold,
        trace=settings.retrieval_trace,
    )


def change_options(options: RetrievalOptions, changes: Mapping[str, object]) -> RetrievalOptions:
    """Return the options with what a call says; weights it states are meant for any intent."""
    known = [each.name for each in fields(RetrievalOptions)]
    for name in changes:
        if name not in known:
            raise InvalidInput(
                f"A retrieval has no option {name!r}.", hint=f"Options: {', '.join(known)}."
            )
    if WEIGHT_NAMES & set(changes):
        options = replace(options, adaptive_weights=False)
    return replace(options, **changes)  # type: ignore[arg-type]


def adapt_options(
    options: RetrievalOptions, intent: Intent, *, fitted: tuple[float, float] | None = None
) -> RetrievalOptions:
    """Return the options with the weights and the pool of an intent; fitted weights come first."""
    if not options.adaptive_weights:
        return options
    preset = PRESETS.get(intent)
    if preset is not None:
        options = replace(
            options,
            bm25_weight=preset.bm25_weight,
            vector_weight=preset.vector_weight,
            k_base=max(options.k_base, preset.k_base),
        )
    if fitted is None:
        return options
    return replace(options, bm25_weight=fitted[0], vector_weight=fitted[1])


def clamp_results(max_results: int) -> int:
    """Return a number of results from 1 to 20."""
    return max(1, min(max_results, MOST_RESULTS))


def choose_depth(options: RetrievalOptions, max_results: int, *, walks: bool) -> int:
    """Return how many fused nodes to ask for: more than the pool where a walk is to lift some."""
    pool = choose_pool(options, max_results)
    return max(pool, WALK_DEPTH) if walks else pool


def choose_pool(options: RetrievalOptions, max_results: int) -> int:
    """Return how many fused nodes the steps after the search work on."""
    reranked = 4 * options.rerank_topk if options.reranker != "none" else 0
    return max(options.k_base, 2 * max_results, LEAST_POOL, reranked)
