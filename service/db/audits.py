"""Recall audits: a search through the ANN index, repeated exactly and put on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import Connection

from service.db.search import encode_filters
from service.types import SearchFilters, Vector

TOP_K = 20
# The newest of the last day say how the index is now; more would hide a change.
_NEWEST = 200


@dataclass(frozen=True, slots=True)
class Audit:
    """How many of the nearest there are, and how many the index found; exact was not audited."""

    path: str
    expected: int
    found: int


@dataclass(frozen=True, slots=True)
class AuditState:
    """The recall of a tenant's newest audits; None without any."""

    audits: int
    recall: float | None


def audit_vector_leg(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    query_embedding: Vector,
    node_types: Sequence[str] | None = None,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> Audit:
    """Search by the path that a search takes and exactly, and compare the best twenty."""
    row = connection.exec_driver_sql(
        "select path, expected, found"
        " from contextforge.audit_vector_leg(%b::public.vector, %s, %s, %s, %s, %s)",
        (
            query_embedding,
            list(tenant_ids),
            None if node_types is None else list(node_types),
            dataset_name,
            encode_filters(filters),
            TOP_K,
        ),
    ).one()
    return Audit(*row)


def store_audits(connection: Connection, tenant_id: str, *, audits: Sequence[Audit]) -> int:
    """Keep those audits that expected anything; return how many."""
    kept = [audit for audit in audits if audit.expected > 0]
    connection.exec_driver_sql(
        "insert into public.recall_audits (tenant_id, audit_id, path, expected, found)"
        " select %s, a.audit_id, a.path, a.expected, a.found"
        " from unnest(%s::uuid[], %s::text[], %s::integer[], %s::integer[])"
        " as a (audit_id, path, expected, found)",
        (
            tenant_id,
            [uuid4() for _ in kept],
            [audit.path for audit in kept],
            [audit.expected for audit in kept],
            [audit.found for audit in kept],
        ),
    )
    return len(kept)


def read_audit_state(connection: Connection, tenant_id: str) -> AuditState:
    """Return the recall of the newest audits of the last day."""
    row = connection.exec_driver_sql(
        "select count(*), sum(a.found)::float / nullif(sum(a.expected), 0) from ("
        " select found, expected from public.recall_audits"
        " where tenant_id = %s and audited_at > now() - interval '1 day'"
        " order by audited_at desc, audit_id limit %s) as a",
        (tenant_id, _NEWEST),
    ).one()
    return AuditState(*row)
