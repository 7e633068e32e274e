"""How a tenant's searches went and how much it stores: a few statements, added up by PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import Connection

from service.db.comparing import POSITIVE_SIGNALS

TOP = 5


@dataclass(frozen=True, slots=True)
class Traffic:
    """Searches and what people thought of them; None where there is nothing to say it from.

    click_through: share of the searches that showed anything in which something was clicked.
    mrr and positive_in_top: over searches with feedback on a node; the mean of 1 / position of the
    first one found good (0 without any), and the share with one among the first five.
    """

    searches: int
    errors: int
    cache_hit_rate: float | None
    click_through: float | None
    judged: int
    mrr: float | None
    positive_in_top: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class HourTraffic:
    """The traffic of an hour, by its start."""

    hour: datetime
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class VariantTraffic:
    """The traffic of one variant of an experiment."""

    experiment_id: UUID
    variant: str
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """All traffic of a time, by the hour, and by variant where an experiment took part."""

    total: Traffic
    hours: tuple[HourTraffic, ...]
    variants: tuple[VariantTraffic, ...]


@dataclass(frozen=True, slots=True)
class StepLatency:
    """How long a step took, in milliseconds."""

    step: str
    times: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class HourAudits:
    """Audits of an hour, and the share of the nearest nodes that the index found."""

    hour: datetime | None
    audits: int
    recall: float | None


@dataclass(frozen=True, slots=True)
class SizeMark:
    """What a tenant stored on a day, as contextforge maintain counted it."""

    marked_on: date
    nodes: int
    vectors: int
    segments: int
    postings: int
    dead_postings: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StoredNow:
    """What a tenant stores at this moment."""

    nodes: int
    vectors: int
    segments: int
    postings: int
    dead_share: float


@dataclass(frozen=True, slots=True)
class TenantGauges:
    """The keyword index of a tenant."""

    tenant_id: str
    documents: int
    segments: int
    postings: int
    dead_share: float


@dataclass(frozen=True, slots=True)
class StorageGauges:
    """The keyword indexes of some tenants, and the ANN index that all share."""

    ann_index_bytes: int
    tenants: tuple[TenantGauges, ...]


_TRAFFIC = """
    with judged as (
        select
            f.trace_id,
            bool_or(f.signal = 'clicked') as clicked,
            bool_or(f.node_id is not null) as judged,
            min(coalesce(f.position, array_position(t.node_ids, f.node_id)))
                filter (where f.signal = any(%(signals)s)) as first_place
        from public.feedback as f
        join public.traces as t on t.tenant_id = %(tenant)s and t.trace_id = f.trace_id
        where f.tenant_id = %(tenant)s
            and t.created_at >= now() - make_interval(hours => %(hours)s)
        group by f.trace_id
    ),

    searched as (
        select
            date_trunc('hour', t.created_at) as hour, t.experiment_id, t.variant, t.error, t.cached,
            cardinality(t.node_ids) > 0 as shown,
            t.milliseconds[array_position(t.steps, 'total')] as taken,
            coalesce(j.clicked, false) as clicked, coalesce(j.judged, false) as judged,
            j.first_place
        from public.traces as t
        left join judged as j on j.trace_id = t.trace_id
        where t.tenant_id = %(tenant)s
            and t.created_at >= now() - make_interval(hours => %(hours)s)
    )

    select
        grouping(s.hour) = 0 as by_hour, s.hour,
        grouping(s.variant) = 0 as by_variant, s.experiment_id, s.variant,
        count(*), count(s.error),
        (avg(s.cached::integer) filter (where s.error is null))::float,
        (avg(s.clicked::integer) filter (where s.shown))::float,
        count(*) filter (where s.judged),
        (avg(coalesce(1.0 / s.first_place, 0)) filter (where s.judged))::float,
        (avg((coalesce(s.first_place, %(top)s + 1) <= %(top)s)::integer)
            filter (where s.judged))::float,
        percentile_cont(array[0.5, 0.95, 0.99]) within group (order by s.taken)
    from searched as s
    group by grouping sets ((), (s.hour), (s.experiment_id, s.variant))
    order by by_hour, by_variant, s.hour, s.experiment_id, s.variant
"""


def read_traffic(connection: Connection, tenant_id: str, *, hours: int) -> TrafficReport:
    """Return how a tenant's searches of the last hours went."""
    rows = connection.exec_driver_sql(
        _TRAFFIC,
        {"tenant": tenant_id, "hours": hours, "signals": list(POSITIVE_SIGNALS), "top": TOP},
    ).all()
    total = Traffic(0, 0, None, None, 0, None, None, None, None, None)
    by_hour: list[HourTraffic] = []
    by_variant: list[VariantTraffic] = []
    for is_hour, hour, is_variant, experiment_id, variant, *figures, times in rows:
        traffic = Traffic(*figures, *(times or (None, None, None)))
        if is_hour:
            by_hour.append(HourTraffic(hour, traffic))
        elif not is_variant:
            total = traffic
        elif variant is not None:
            by_variant.append(VariantTraffic(experiment_id, variant, traffic))
    return TrafficReport(total, tuple(by_hour), tuple(by_variant))


def read_latencies(connection: Connection, tenant_id: str, *, hours: int) -> list[StepLatency]:
    """Return how long each step took in the last hours, the total last."""
    rows = connection.exec_driver_sql(
        "select x.step, count(*),"
        " percentile_cont(array[0.5, 0.95, 0.99]) within group (order by x.taken)"
        " from public.traces as t"
        " cross join lateral unnest(t.steps, t.milliseconds) as x (step, taken)"
        " where t.tenant_id = %s and t.created_at >= now() - make_interval(hours => %s)"
        " group by x.step order by x.step = 'total', min(array_position(t.steps, x.step)), x.step",
        (tenant_id, hours),
    )
    return [StepLatency(step, times, *taken) for step, times, taken in rows]


def read_audit_hours(connection: Connection, tenant_id: str, *, hours: int) -> list[HourAudits]:
    """Return the audits of the last hours: first all of them, then hour by hour."""
    rows = connection.exec_driver_sql(
        "select date_trunc('hour', a.audited_at) as hour, count(*),"
        " sum(a.found)::float / nullif(sum(a.expected), 0)"
        " from public.recall_audits as a"
        " where a.tenant_id = %s and a.audited_at >= now() - make_interval(hours => %s)"
        " group by grouping sets ((), (date_trunc('hour', a.audited_at)))"
        " order by hour nulls first",
        (tenant_id, hours),
    )
    return [HourAudits(*row) for row in rows]


def read_stored(connection: Connection, tenant_id: str) -> StoredNow:
    """Count what a tenant stores."""
    row = connection.exec_driver_sql(
        """
        select
            (select count(*) from public.knowledge_nodes as n where n.tenant_id = %(tenant)s),
            (
                select count(s.embedding) from contextforge.search_nodes as s
                where s.tenant_id = %(tenant)s
            ),
            count(*), coalesce(sum(s.postings), 0)::bigint,
            coalesce(1 - sum(s.live_postings)::float / nullif(sum(s.postings), 0), 0)
        from contextforge.segments as s
        where s.tenant_id = %(tenant)s
        """,
        {"tenant": tenant_id},
    ).one()
    return StoredNow(*row)


def read_size_marks(connection: Connection, tenant_id: str, *, most: int = 90) -> list[SizeMark]:
    """Return the newest marks of a tenant, the oldest of them first."""
    rows = connection.exec_driver_sql(
        "select marked_on, nodes, vectors, segments, postings, dead_postings, bytes"
        " from public.size_marks where tenant_id = %s order by marked_on desc limit %s",
        (tenant_id, most),
    ).all()
    return [SizeMark(*row) for row in reversed(rows)]


def mark_size(connection: Connection, tenant_id: str) -> None:
    """Keep what a tenant stores today; the connection is the owner's."""
    connection.exec_driver_sql("select contextforge.mark_size(%s)", (tenant_id,))


def read_storage_gauges(connection: Connection, tenant_ids: Sequence[str]) -> StorageGauges:
    """Return the figures of the indexes, without reading a node."""
    size = connection.exec_driver_sql(
        "select coalesce(pg_relation_size("
        "to_regclass('contextforge.idx_knowledge_nodes_embedding')), 0)"
    ).scalar_one()
    rows = connection.exec_driver_sql(
        "select s.tenant_id, sum(s.documents)::bigint, count(*), sum(s.postings)::bigint,"
        " coalesce(1 - sum(s.live_postings)::float / nullif(sum(s.postings), 0), 0)"
        " from contextforge.segments as s where s.tenant_id = any(%s)"
        " group by s.tenant_id order by s.tenant_id",
        (list(tenant_ids),),
    )
    return StorageGauges(int(size), tuple(TenantGauges(*row) for row in rows))
