"""Upkeep of the search tables: one Python function per SQL function, of the same name."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class SegmentState:
    """How a tenant's postings lie: few large segments and few dead postings are good."""

    tenant_id: str
    segments: int
    postings: int
    dead_share: float


def list_segment_states(connection: Connection) -> list[SegmentState]:
    """Return the state of every tenant, in order; the connection is the owner's."""
    rows = connection.exec_driver_sql(
        "select t.tenant_id, count(s.tenant_id), coalesce(sum(s.postings), 0)::bigint,"
        " coalesce(1 - sum(s.live_postings)::float / nullif(sum(s.postings), 0), 0)"
        " from contextforge.tenants as t"
        " left join contextforge.segments as s on s.tenant_id = t.tenant_id"
        " group by t.tenant_id order by t.tenant_id"
    )
    return [SegmentState(*row) for row in rows]


def refresh_planner_statistics(connection: Connection) -> None:
    """Let the planner know the tables as they are now; the connection is the owner's."""
    connection.exec_driver_sql(
        "analyze public.knowledge_nodes, public.node_links, contextforge.postings,"
        " contextforge.segments, contextforge.search_nodes, contextforge.ann_nodes"
    )


def merge_segments(connection: Connection, tenant_id: str, *, everything: bool = False) -> int:
    """Fold a tenant's segments and drop dead postings; return how many were folded."""
    folded = connection.exec_driver_sql(
        "select public.merge_segments(%s, %s)", (tenant_id, everything)
    ).scalar_one()
    return int(folded)


def refresh_ann(connection: Connection, tenant_id: str, *, max_rows: int = 5000) -> int:
    """Move vectors of a large tenant under the ANN index; return how many were moved."""
    moved = connection.exec_driver_sql(
        "select public.refresh_ann(%s, %s)", (tenant_id, max_rows)
    ).scalar_one()
    return int(moved)
