"""Upkeep of the search tables: one Python function per SQL function, of the same name."""

from __future__ import annotations

from sqlalchemy import Connection


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
