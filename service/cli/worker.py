"""contextforge worker: does the work that was queued."""

from __future__ import annotations

import logging
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.ingesting import find_fetcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.embedding import Embedder
    from service.ingestion.job_runner import Kind, LoadEmbedder, Work
    from service.settings import Settings
    from service.types import Json

# The one of the settings, and one that a tenant is changing to.
MODELS_KEPT = 2


def worker(
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Jobs at a time.")] = 1,
    once: Annotated[bool, typer.Option("--once", help="Stop when the queue is empty.")] = False,
) -> None:
    """Do queued work until stopped; a job in hand is finished, or goes back to the queue.

    Several workers may run at once, on any machine that reaches the database.
    """
    from service.db.database import open_database
    from service.db.engine import open_engine
    from service.db.queue import QueueWorker
    from service.ingestion.job_runner import JobRunner
    from service.settings import load_settings

    settings = load_settings()
    _log_to_stderr(settings)
    with open_database(settings) as database:
        # A connection a job, and one to look after the queue.
        engine = open_engine(database.url, pool_size=concurrency + 1, pool_timeout=10)
        try:
            embedders = _keep_embedders(settings.embedding_model)
            runner = JobRunner(engine, list_kinds(), embedders, find_fetcher())
            QueueWorker(engine, database.url, runner.run, concurrency=concurrency).run(once=once)
        finally:
            engine.dispose()


def list_kinds() -> Mapping[str, Kind]:
    """Every kind of work there is; a new one is added here."""
    from service.ingestion.job_kinds import INGESTION_KINDS

    return {**INGESTION_KINDS, "refresh_ranks": _refresh_ranks}


def _refresh_ranks(work: Work) -> Mapping[str, Json]:
    """Compute the tenant's ranks anew if that is due, or in any case if so asked."""
    from service.retrieval.ranks import refresh_ranks

    force = bool(work.arguments.get("force", False))
    state = refresh_ranks(work.engine, work.tenant_id, force=force)
    linked = 0 if state is None else state.linked_nodes
    return {"tenant_id": work.tenant_id, "linked_nodes": linked}


def _keep_embedders(default_model: str) -> LoadEmbedder:
    """Load a model when a job first needs it, and keep it for the next."""
    from service.embedding import load_embedder

    load = lru_cache(MODELS_KEPT)(load_embedder)
    lock = Lock()

    def find(model: str | None = None) -> Embedder:
        with lock:  # two jobs that start together load it once
            return load(model or default_model)

    return find


def _log_to_stderr(settings: Settings) -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("service").setLevel(settings.contextforge_log_level.upper())
