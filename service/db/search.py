"""Search: one Python function per SQL function, of the same name."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.types import (
    ExplainedHit,
    Fusion,
    Hit,
    ScoredNode,
    SearchExplanation,
    SearchFilters,
    Vector,
)

# %b sends vectors in binary: as text they cost more than the search itself.
_HYBRID_ARGUMENTS = (
    "(%s, %b::public.vector, %s, %s, %s, %s, %s,"
    " dataset_name => %s, filters => %s, fusion => %s, rrf_k => %s, min_relevance => %s)"
)


def hybrid_search_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_text: str | None = None,
    query_embedding: Vector | None = None,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    bm25_weight: float = 0.4,
    vector_weight: float = 0.6,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
    fusion: Fusion = "rrf",
    rrf_k: int = 60,
    min_relevance: float | None = None,
) -> list[Hit]:
    """Find nodes by keywords and meaning, fused; best first."""
    rows = connection.exec_driver_sql(
        "select node_id, bm25_score, vector_score, combined_score"
        f" from public.hybrid_search_nodes{_HYBRID_ARGUMENTS}",
        (
            query_text,
            query_embedding,
            list(tenant_ids),
            _list(node_types),
            top_k,
            bm25_weight,
            vector_weight,
            dataset_name,
            encode_filters(filters),
            fusion,
            rrf_k,
            min_relevance,
        ),
    )
    return [Hit(*row) for row in rows]


def explain_hybrid_search(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_text: str | None = None,
    query_embedding: Vector | None = None,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    bm25_weight: float = 0.4,
    vector_weight: float = 0.6,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
    fusion: Fusion = "rrf",
    rrf_k: int = 60,
    min_relevance: float | None = None,
) -> SearchExplanation:
    """Run the same search and say why each node ranks where it does."""
    rows = connection.exec_driver_sql(
        "select node_id, bm25_rank, vector_rank, bm25_score, vector_score, combined_score,"
        " relevance, band, terms, vector_path, vector_rows, shortfall"
        f" from public.explain_hybrid_search{_HYBRID_ARGUMENTS}",
        (
            query_text,
            query_embedding,
            list(tenant_ids),
            _list(node_types),
            top_k,
            bm25_weight,
            vector_weight,
            dataset_name,
            encode_filters(filters),
            fusion,
            rrf_k,
            min_relevance,
        ),
    ).all()
    hits = tuple(ExplainedHit(*row[:9]) for row in rows if row.node_id is not None)
    return SearchExplanation(hits, *rows[0][9:])


def bm25_search_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_text: str,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> list[ScoredNode]:
    """Find nodes by keywords alone; best first."""
    rows = connection.exec_driver_sql(
        "select node_id, bm25_score from public.bm25_search_nodes(%s, %s, %s, %s, %s, %s)",
        (
            query_text,
            list(tenant_ids),
            _list(node_types),
            top_k,
            dataset_name,
            encode_filters(filters),
        ),
    )
    return [ScoredNode(*row) for row in rows]


def vector_search_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_embedding: Vector,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    similarity_threshold: float | None = None,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> list[ScoredNode]:
    """Find nodes by meaning alone, at least as similar as the threshold; best first."""
    rows = connection.exec_driver_sql(
        "select node_id, vector_score"
        " from public.vector_search_nodes(%b::public.vector, %s, %s, %s, %s, %s, %s)",
        (
            query_embedding,
            list(tenant_ids),
            _list(node_types),
            top_k,
            similarity_threshold,
            dataset_name,
            encode_filters(filters),
        ),
    )
    return [ScoredNode(*row) for row in rows]


def similar_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    node_id: int,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> list[Hit]:
    """Find more nodes like one that is stored; best first."""
    rows = connection.exec_driver_sql(
        "select node_id, bm25_score, vector_score, combined_score"
        " from public.similar_nodes(%s, %s, %s, %s, %s, %s)",
        (
            node_id,
            list(tenant_ids),
            _list(node_types),
            top_k,
            dataset_name,
            encode_filters(filters),
        ),
    )
    return [Hit(*row) for row in rows]


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def encode_filters(filters: SearchFilters | None) -> Jsonb | None:
    """Return the filters as the SQL functions take them."""
    if filters is None:
        return None
    given = {
        "lang": filters.lang,
        "space_id": filters.space_id,
        "doc": list(filters.docs),
        "acl": list(filters.acl_groups),
        "metadata": dict(filters.metadata),
        "without_metadata": dict(filters.without_metadata),
    }
    return Jsonb({key: value for key, value in given.items() if value})
