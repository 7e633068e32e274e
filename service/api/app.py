"""The application: its database, its errors, and whether it is well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from pydantic import BaseModel, Field

from service import __version__
from service.api.problems import Problem, answer_service_error, make_problem
from service.db.database import Database, open_database
from service.db.engine import plain_transaction
from service.db.startup import check_revision
from service.errors import ServiceError
from service.settings import Settings

health = APIRouter(tags=["health"])


class Health(BaseModel):
    """The answer of a service that is well."""

    status: str = Field("ok", description="Always ok; anything else is a problem.")


def create_app(settings: Settings, *, database: Database | None = None) -> FastAPI:
    """Build the application; unless given a database, it opens and closes its own."""

    @asynccontextmanager
    async def open_and_close(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            app.state.database = database or stack.enter_context(open_database(settings))
            yield

    app = FastAPI(title="ContextForge", version=__version__, lifespan=open_and_close)
    app.add_exception_handler(ServiceError, answer_service_error)
    app.include_router(health)
    return app


def find_database(request: Request) -> Database:
    """Return the database of the application a request came to."""
    database = request.app.state.database
    assert isinstance(database, Database)
    return database


@health.get("/healthz")
async def check_health() -> Health:
    """Say that the process is alive; the database is not asked."""
    return Health()


@health.get("/readyz", response_model=Health, responses={503: {"model": Problem}})
def check_readiness(database: Annotated[Database, Depends(find_database)]) -> Health | Response:
    """Say whether the database answers and is at the newest migration."""
    try:
        with plain_transaction(database.engine) as connection:
            check_revision(connection)
    except ServiceError as exc:
        return make_problem(exc, status=503)
    return Health()
