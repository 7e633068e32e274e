"""What the endpoints work with: one of each for an application."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from service.answering import Answerer
from service.api.embedder import ServiceEmbedder
from service.api.metrics import Metrics
from service.api.scrapes import Scrapes
from service.db.database import Database, open_database
from service.db.engine import open_engine
from service.embedding import Embedder, load_embedder
from service.llm.calls import MessagesClient
from service.pipeline import Pipeline
from service.quality.audit import Auditor
from service.quality.experiments import RollbackWatch
from service.quality.recorder import Recorder
from service.retrieval.ranks import RankMemory
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """The database, the embedder and the use cases on top of them; safe to share."""

    settings: Settings
    database: Database
    embedder: ServiceEmbedder
    pipeline: Pipeline
    answerer: Answerer
    metrics: Metrics
    ranks: RankMemory
    recorder: Recorder
    rollbacks: RollbackWatch
    auditor: Auditor
    scrapes: Scrapes
    demo: bool = False


@contextmanager
def open_services(
    settings: Settings,
    *,
    metrics: Metrics,
    database: Database | None = None,
    embedder: Embedder | None = None,
    demo: bool = False,
) -> Iterator[Services]:
    """Open what is not given; it is closed at the end."""
    with ExitStack() as stack:
        opened = database or stack.enter_context(
            open_database(settings, pool_size=settings.contextforge_pool_size)
        )
        own = ServiceEmbedder(lambda: embedder or load_embedder(settings.embedding_model))
        recorder = stack.enter_context(open_recorder(opened.url, metrics=metrics))
        claude = _open_claude(settings)
        ranks = RankMemory()
        pipeline = Pipeline(opened.engine, settings, embedder=own, claude=claude, ranks=ranks)
        yield Services(
            settings=settings,
            database=opened,
            embedder=own,
            pipeline=pipeline,
            answerer=Answerer(
                opened.engine, settings, embedder=own, claude=claude, pipeline=pipeline
            ),
            metrics=metrics,
            ranks=ranks,
            recorder=recorder,
            rollbacks=RollbackWatch(recorder, settings, on_rollback=metrics.count_rollback),
            auditor=Auditor(
                own,
                share=settings.contextforge_audit_share,
                least_recall=settings.contextforge_audit_least_recall,
                on_recall=metrics.note_recall,
            ),
            scrapes=Scrapes(opened.engine, metrics),
            demo=demo,
        )


@contextmanager
def open_recorder(url: str, *, metrics: Metrics) -> Iterator[Recorder]:
    """Open what writes records beside the requests; what still waits is written at the end."""
    engine = open_engine(url, pool_size=1)
    recorder = Recorder(engine, on_lost=metrics.count_lost)
    try:
        yield recorder
    finally:
        recorder.close()
        engine.dispose()


def find_services(request: Request) -> Services:
    """Return what the application of a request works with."""
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


FromServices = Annotated[Services, Depends(find_services)]


def _open_claude(settings: Settings) -> MessagesClient | None:
    from service.llm import open_client

    key = settings.anthropic_api_key
    if key is None:
        return None
    return open_client(key.get_secret_value(), settings.anthropic_base_url)
