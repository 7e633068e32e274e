"""Reads for text-to-SQL: nodes without ranking, and nodes by similarity alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.db.search import encode_filters
from service.types import Candidate, Node, SearchFilters, Vector

_COLUMNS = ", ".join(f"n.{each.name}" for each in fields(Node))


def list_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    dataset_name: str | None = None,
    node_types: Sequence[str] | None = None,
    filters: SearchFilters | None = None,
    every_group: bool = False,
    after: int = 0,
    limit: int | None = None,
) -> list[Node]:
    """Return nodes by node_id, after the one given; of the filters, metadata and groups count.

    every_group: nodes with an acl too, whoever's they are; for operators.
    """
    connection.exec_driver_sql("select contextforge.require_tenants(%s)", ([tenant_id],))
    kept = filters or SearchFilters()
    # Only what is asked for stands in the statement: a plan for "is null or" uses no index.
    conditions: list[tuple[str, object]] = [
        ("n.tenant_id = %s", tenant_id),
        ("n.node_id > %s", after),
    ]
    if not every_group:
        conditions.append(("(n.acl = '{}' or n.acl && %s::text[])", list(kept.acl_groups)))
    if dataset_name is not None:
        conditions.append(("n.dataset_name = %s", dataset_name))
    if node_types is not None:
        conditions.append(("n.node_type = any(%s)", list(node_types)))
    if kept.metadata:
        conditions.append(("n.metadata @> %s", Jsonb(dict(kept.metadata))))
    rows = connection.exec_driver_sql(
        f"select {_COLUMNS} from public.knowledge_nodes as n"
        f" where {' and '.join(text for text, _ in conditions)} order by n.node_id limit %s",
        (*(value for _, value in conditions), limit),
    )
    return [Node(*row) for row in rows]


def search_similar(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_embedding: Vector,
    node_types: Sequence[str] | None = None,
    top_k: int = 20,
    similarity_threshold: float | None = None,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> list[Candidate]:
    """Run vector_search_nodes and read what it finds; best first, the cosine is its score."""
    rows = connection.exec_driver_sql(
        f"select h.vector_score, {_COLUMNS}"
        " from public.vector_search_nodes(%b::public.vector, %s, %s, %s, %s, %s, %s) as h"
        # "limit 1" keeps the planner from joining whole tables: an index lookup for each hit.
        " cross join lateral (select n.* from public.knowledge_nodes as n"
        " where n.tenant_id = any(%s) and n.node_id = h.node_id limit 1) as n"
        " order by h.vector_score desc, h.node_id",
        (
            query_embedding,
            list(tenant_ids),
            None if node_types is None else list(node_types),
            top_k,
            similarity_threshold,
            dataset_name,
            encode_filters(filters),
            list(tenant_ids),
        ),
    )
    return [
        Candidate(Node(*row[1:]), score=row[0], vector_score=row[0], combined_score=row[0])
        for row in rows
    ]
