"""The application: its middleware, its routes, and what they work with."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from threading import Thread

from anyio import to_thread
from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from service import __version__
from service.api.embedder import ServiceEmbedder
from service.api.logs import configure_logs
from service.api.metrics import Metrics
from service.api.middleware import Limit, Observe, Watch, count_threads
from service.api.openapi import build_openapi
from service.api.problems import add_handlers
from service.api.routes import (
    answer,
    documents,
    health,
    nodes,
    playground,
    records,
    search,
    stats,
    text_to_sql,
)
from service.api.state import open_services
from service.db.database import Database
from service.embedding import Embedder
from service.errors import ModelUnavailable
from service.settings import Settings, load_settings

logger = logging.getLogger(__name__)

ROUTERS: tuple[APIRouter, ...] = (
    search.router,
    answer.router,
    text_to_sql.router,
    documents.writing,
    documents.reading,
    nodes.reading,
    nodes.writing,
    records.router,
    records.admin,
    stats.router,
    health.router,
    playground.router,
)


def create_app(
    settings: Settings,
    *,
    database: Database | None = None,
    embedder: Embedder | None = None,
    demo: bool = False,
    warm: bool = False,
) -> FastAPI:
    """Build the application; what it is not given it opens, and closes at the end.

    demo: serve tenant demo to this machine without a key; only where nobody else can connect.
    warm: load the embedder at once, beside the start, and not with the first question.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def open_and_close(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = count_threads(settings)
        with open_services(
            settings, metrics=metrics, database=database, embedder=embedder, demo=demo
        ) as services:
            app.state.services = services
            if warm:
                Thread(target=_warm, args=(services.embedder,), daemon=True).start()
            yield

    app = FastAPI(
        title="ContextForge",
        version=__version__,
        lifespan=open_and_close,
        docs_url=None,
        redoc_url=None,
        middleware=[
            Middleware(Observe, metrics=metrics),
            Middleware(Limit, settings=settings),
            Middleware(Watch, settings=settings),
        ],
    )
    add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    app.openapi = partial(build_openapi, app)  # type: ignore[method-assign]
    return app


def create_worker_app() -> FastAPI:
    """Build the application of one of several processes, from the environment they share."""
    settings = load_settings()
    configure_logs(settings)
    return create_app(settings, warm=True)


def _warm(embedder: ServiceEmbedder) -> None:
    try:
        embedder.warm()
    except ModelUnavailable:
        logger.exception("The embedder cannot be loaded: searches are by keywords alone.")
