"""How the tenant's searches went, and how much it stores."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from service.api.access import AdminRoute, FromAccess, describe_headers
from service.api.models.stats import (
    ShownHour,
    ShownRecall,
    ShownSeries,
    ShownSizeMark,
    ShownStats,
    ShownStepLatency,
    ShownStorage,
    ShownTraffic,
    ShownVariant,
)
from service.api.state import FromServices
from service.db.engine import tenant_transaction
from service.quality.stats import TenantStats, read_tenant_stats

MOST_HOURS = 24 * 90

router = APIRouter(
    prefix="/v1", tags=["records"], route_class=AdminRoute, dependencies=[Depends(describe_headers)]
)


@router.get("/stats")
def read_stats(
    access: FromAccess,
    services: FromServices,
    hours: Annotated[int, Query(ge=1, le=MOST_HOURS, description="How far to look back.")] = 24,
) -> ShownStats:
    """Read searches, errors, feedback, latencies, recall and storage of the tenant."""
    with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
        return _describe(read_tenant_stats(connection, access.tenant_id, hours=hours))


def _describe(stats: TenantStats) -> ShownStats:
    traffic = stats.traffic
    return ShownStats(
        tenant_id=stats.tenant_id,
        hours=stats.hours,
        taken_at=stats.taken_at,
        traffic=ShownTraffic.model_validate(traffic.total),
        latencies=[ShownStepLatency.model_validate(each) for each in stats.latencies],
        recall=ShownRecall.model_validate(stats.audits),
        storage=ShownStorage.model_validate(
            {**asdict(stats.stored), "bytes": stats.bytes, "growth": stats.growth}
        ),
        variants=[
            ShownVariant(
                experiment_id=each.experiment_id, variant=each.variant, **asdict(each.traffic)
            )
            for each in traffic.variants
        ],
        series=ShownSeries(
            hours=[ShownHour(hour=each.hour, **asdict(each.traffic)) for each in traffic.hours],
            recall=[ShownRecall.model_validate(each) for each in stats.audit_hours],
            sizes=[ShownSizeMark.model_validate(each) for each in stats.marks],
        ),
    )
