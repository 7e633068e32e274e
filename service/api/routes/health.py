"""Is the service well, what are its figures, and how is it used."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from service.api.access import require_metrics_reader
from service.api.docs_page import POLICY, render_docs
from service.api.problems import Problem, make_problem
from service.api.state import FromServices
from service.db.engine import plain_transaction
from service.db.startup import check_revision
from service.errors import ServiceError

router = APIRouter(tags=["health"])
# Apart from the threads of the requests, which may all be busy when figures matter most.
_SCRAPING = CapacityLimiter(1)


class Health(BaseModel):
    """The answer of a service that is well."""

    status: str = Field("ok", description="Always ok; anything else is a problem.")


@router.get("/healthz")
async def check_health() -> Health:
    """Say that the process is alive; the database is not asked."""
    return Health()


@router.get("/readyz", response_model=Health, responses={503: {"model": Problem}})
def check_readiness(services: FromServices) -> Health | Response:
    """Say whether the database answers and is at the newest migration."""
    try:
        with plain_transaction(services.database.engine) as connection:
            check_revision(connection)
    except ServiceError as exc:
        return make_problem(exc, status=503)
    return Health()


@router.get("/metrics", response_class=PlainTextResponse, responses={403: {"model": Problem}})
async def read_metrics(request: Request, services: FromServices) -> Response:
    """Read the figures of the service in the format of Prometheus.

    They name tenants: for whoever has CONTEXTFORGE_METRICS_TOKEN, or for this machine without one.
    """
    require_metrics_reader(request)
    await to_thread.run_sync(services.scrapes.refresh, limiter=_SCRAPING)
    services.metrics.watch_pool(services.database.engine)
    return Response(services.metrics.render(), media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
async def read_docs(request: Request) -> HTMLResponse:
    """Read how the API is used."""
    page = render_docs(request.app.openapi())
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})
