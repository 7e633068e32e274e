"""contextforge stats: how searches went, and how much is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import AsJson, print_json, print_rows

if TYPE_CHECKING:
    from service.db.stats import Traffic
    from service.quality.stats import TenantStats

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class StepRow:
    """The latency of a step as it fits a terminal."""

    step: str
    times: int
    p50_ms: str
    p95_ms: str
    p99_ms: str


def stats(
    *,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")] = None,
    hours: Annotated[int, typer.Option(min=1, max=24 * 90, help="How far to look back.")] = 24,
    as_json: AsJson = False,
) -> None:
    """Show searches, errors, feedback, latencies, recall and storage of tenants."""
    from service.db.database import open_admin, open_database
    from service.db.engine import owner_transaction, tenant_transaction
    from service.db.reembedding import read_embedder
    from service.db.registry import list_tenants
    from service.quality.stats import read_tenant_stats
    from service.settings import load_settings

    settings = load_settings()
    if tenant is not None:
        with (
            open_database(settings) as database,
            tenant_transaction(database.engine, [tenant]) as connection,
        ):
            read_embedder(connection, tenant)  # a tenant that is not there is refused here
            found = [read_tenant_stats(connection, tenant, hours=hours)]
    else:
        with open_admin(settings) as admin, owner_transaction(admin.engine) as connection:
            names = [each.tenant_id for each in list_tenants(connection)]
            found = [read_tenant_stats(connection, name, hours=hours) for name in names]
    if as_json:
        print_json([asdict(each) for each in found])
        return
    for each in found:
        _show(each)


def _show(stats: TenantStats) -> None:
    traffic = stats.traffic.total
    typer.echo(f"{stats.tenant_id}, last {stats.hours} h")
    for line in (*_describe_traffic(traffic), *_describe_storage(stats)):
        typer.echo(f"  {line}")
    for variant in stats.traffic.variants:
        typer.echo(f"  variant {variant.variant} of {variant.experiment_id}:")
        for line in _describe_traffic(variant.traffic):
            typer.echo(f"    {line}")
    rows = [
        StepRow(
            each.step, each.times, *(f"{ms:.1f}" for ms in (each.p50_ms, each.p95_ms, each.p99_ms))
        )
        for each in stats.latencies
    ]
    if rows:
        print_rows(rows, StepRow, as_json=False)


def _describe_traffic(traffic: Traffic) -> Iterator[str]:
    yield f"searches        {traffic.searches}, {traffic.errors} failed"
    yield f"cache hit rate  {_share(traffic.cache_hit_rate)}"
    yield f"click-through   {_share(traffic.click_through)}"
    yield (
        f"MRR             {_share(traffic.mrr)}; good one in the first five "
        f"{_share(traffic.positive_in_top)} ({traffic.judged} searches with feedback)"
    )


def _describe_storage(stats: TenantStats) -> Iterator[str]:
    stored, growth = stats.stored, stats.growth
    yield f"recall          {_share(stats.audits.recall)} ({stats.audits.audits} audits)"
    yield f"nodes           {stored.nodes}, {stored.vectors} vectors"
    yield (
        f"postings        {stored.postings} in {stored.segments} segments, "
        f"{stored.dead_share:.1%} dead"
    )
    if stats.bytes is not None:
        yield f"size            {stats.bytes / _MEGABYTE:.1f} MB"
    if growth is not None:
        yield (
            f"growth          {growth.nodes:+} nodes, {growth.bytes / _MEGABYTE:+.1f} MB "
            f"since {growth.since}"
        )


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f}"
