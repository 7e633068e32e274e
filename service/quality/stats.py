"""How good the service is for a tenant today, in one report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlalchemy import Connection

from service.db.stats import (
    HourAudits,
    SizeMark,
    StepLatency,
    StoredNow,
    TrafficReport,
    read_audit_hours,
    read_latencies,
    read_size_marks,
    read_stored,
    read_traffic,
)


@dataclass(frozen=True, slots=True)
class Growth:
    """What the newest mark has more than the one before it."""

    since: date
    nodes: int
    vectors: int
    segments: int
    postings: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TenantStats:
    """Traffic, latencies, audits and storage of a tenant; bytes are those of the newest mark."""

    tenant_id: str
    hours: int
    taken_at: datetime
    traffic: TrafficReport
    latencies: tuple[StepLatency, ...]
    audits: HourAudits
    audit_hours: tuple[HourAudits, ...]
    stored: StoredNow
    bytes: int | None
    growth: Growth | None
    marks: tuple[SizeMark, ...]


def read_tenant_stats(connection: Connection, tenant_id: str, *, hours: int = 24) -> TenantStats:
    """Return how a tenant's last hours were, and how much it stores."""
    audits, *audit_hours = read_audit_hours(connection, tenant_id, hours=hours)
    marks = read_size_marks(connection, tenant_id)
    return TenantStats(
        tenant_id=tenant_id,
        hours=hours,
        taken_at=datetime.now(UTC),
        traffic=read_traffic(connection, tenant_id, hours=hours),
        latencies=tuple(read_latencies(connection, tenant_id, hours=hours)),
        audits=audits,
        audit_hours=tuple(audit_hours),
        stored=read_stored(connection, tenant_id),
        bytes=marks[-1].bytes if marks else None,
        growth=_find_growth(marks),
        marks=tuple(marks),
    )


def _find_growth(marks: list[SizeMark]) -> Growth | None:
    if len(marks) < 2:
        return None
    before, now = marks[-2:]
    return Growth(
        since=before.marked_on,
        nodes=now.nodes - before.nodes,
        vectors=now.vectors - before.vectors,
        segments=now.segments - before.segments,
        postings=now.postings - before.postings,
        bytes=now.bytes - before.bytes,
    )
