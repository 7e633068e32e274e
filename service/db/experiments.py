"""Experiments: started and stopped, and what became of each of their searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.errors import Conflict, NotFound
from service.types import Experiment, Json, Variant

_COLUMNS = (
    "tenant_id, experiment_id, name, share, settings, interleaved, started_at, ended_at, outcome,"
    " reason"
)
# The first searches of each caller, up to so many a variant: nobody decides alone.
_SEARCHES = """
    with searches as (
        select
            t.trace_id, t.caller, t.variant, t.error, t.cached, t.teams, t.node_ids,
            t.milliseconds[array_position(t.steps, 'total')] as milliseconds,
            row_number() over (
                partition by t.variant, t.caller order by t.created_at, t.trace_id
            ) as number
        from public.traces as t
        where t.tenant_id = %s and t.experiment_id = %s
    )
    select
        s.variant, s.caller, s.error is not null, s.cached, s.milliseconds,
        cardinality(s.node_ids) > 0, f.rated, f.clicked, f.first_positive, f.accepted,
        f.credit_a, f.credit_b, s.number <= %s
    from searches as s
    cross join lateral (
        select
            count(*) > 0 as rated,
            coalesce(bool_or(g.signal = 'clicked'), false) as clicked,
            min(g.position) filter (where g.signal <> 'not_helpful') as first_positive,
            coalesce(bool_or(
                g.signal = 'answer_accepted' or (g.signal <> 'not_helpful' and g.position is null)
            ), false) as accepted,
            count(distinct g.node_id) filter (
                where g.signal <> 'not_helpful' and s.teams[g.position] = 'a'
            ) as credit_a,
            count(distinct g.node_id) filter (
                where g.signal <> 'not_helpful' and s.teams[g.position] = 'b'
            ) as credit_b
        from public.feedback as g
        where g.tenant_id = %s and g.trace_id = s.trace_id
    ) as f
    order by s.variant, s.trace_id
"""


@dataclass(frozen=True, slots=True)
class TriedSearch:
    """A search of an experiment and what people made of it.

    first_positive: position of the first node that was clicked, cited or found helpful.
    accepted: the answer was accepted, or the whole found helpful.
    credit_a, credit_b: nodes of a variant that people wanted, of an interleaved list.
    """

    variant: Variant
    caller: str
    failed: bool
    cached: bool
    milliseconds: float | None
    has_hits: bool
    rated: bool = False
    clicked: bool = False
    first_positive: int | None = None
    accepted: bool = False
    credit_a: int = 0
    credit_b: int = 0


@dataclass(frozen=True, slots=True)
class TriedSearches:
    """The searches of an experiment that count; left_out: those beyond a caller's most."""

    searches: tuple[TriedSearch, ...]
    left_out: int = 0


def start_experiment(
    connection: Connection,
    tenant_id: str,
    *,
    name: str,
    share: float,
    settings: Mapping[str, Json],
    interleaved: bool = False,
) -> Experiment:
    """Let a share of the tenant's searches try settings; Conflict if an experiment runs already."""
    known = connection.exec_driver_sql(
        "select name from contextforge.tenants as t left join public.experiments as e"
        " on e.tenant_id = t.tenant_id and e.ended_at is null where t.tenant_id = %s",
        (tenant_id,),
    ).one_or_none()
    if known is None:
        raise NotFound(f'There is no tenant "{tenant_id}".')
    if known[0] is not None:
        raise Conflict(
            f'The experiment "{known[0]}" of {tenant_id} is still running.',
            hint=f"Stop it first: contextforge ab stop --tenant {tenant_id}",
        )
    row = connection.exec_driver_sql(
        "insert into public.experiments (tenant_id, experiment_id, name, share, settings,"
        f" interleaved) values (%s, %s, %s, %s, %s, %s) returning {_COLUMNS}",
        (tenant_id, uuid4(), name, share, Jsonb(dict(settings)), interleaved),
    ).one()
    return Experiment(*row)


def read_experiment(connection: Connection, tenant_id: str, *, name: str | None) -> Experiment:
    """Return the newest experiment of a tenant, or the newest of that name; NotFound if none."""
    row = connection.exec_driver_sql(
        f"select {_COLUMNS} from public.experiments where tenant_id = %s"
        " and (%s::text is null or name = %s) order by started_at desc, experiment_id limit 1",
        (tenant_id, name, name),
    ).one_or_none()
    if row is None:
        which = "no experiment" if name is None else f'no experiment "{name}"'
        raise NotFound(
            f"{tenant_id} has {which}.", hint="Start one with: contextforge ab start --help"
        )
    return Experiment(*row)


def list_experiments(connection: Connection, tenant_id: str) -> list[Experiment]:
    """Return the experiments of a tenant, the newest first."""
    rows = connection.exec_driver_sql(
        f"select {_COLUMNS} from public.experiments where tenant_id = %s"
        " order by started_at desc, experiment_id",
        (tenant_id,),
    )
    return [Experiment(*row) for row in rows]


def find_running(connection: Connection, tenant_id: str) -> Experiment | None:
    """Return the experiment that runs, if one does."""
    row = connection.exec_driver_sql(
        f"select {_COLUMNS} from public.experiments where tenant_id = %s and ended_at is null",
        (tenant_id,),
    ).one_or_none()
    return None if row is None else Experiment(*row)


def end_experiment(
    connection: Connection, tenant_id: str, *, experiment_id: UUID, outcome: str, reason: str | None
) -> bool:
    """Send all searches to variant a from now on; False if the experiment had ended before."""
    ended = connection.exec_driver_sql(
        "update public.experiments set ended_at = clock_timestamp(), outcome = %s, reason = %s"
        " where tenant_id = %s and experiment_id = %s and ended_at is null",
        (outcome, reason, tenant_id, experiment_id),
    )
    return ended.rowcount == 1


def read_searches(
    connection: Connection, tenant_id: str, *, experiment_id: UUID, most_per_caller: int
) -> TriedSearches:
    """Return the searches of an experiment, the first so many of each caller and variant."""
    values = (tenant_id, experiment_id, most_per_caller, tenant_id)
    rows: list[Any] = list(connection.exec_driver_sql(_SEARCHES, values))
    counted = tuple(TriedSearch(*row[:-1]) for row in rows if row[-1])
    return TriedSearches(counted, left_out=len(rows) - len(counted))
