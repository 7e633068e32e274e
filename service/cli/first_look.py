"""The first thing `contextforge run` shows: a search of the demo, and an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from service.cli.search import tabulate_candidates

if TYPE_CHECKING:
    from service.db.database import Database
    from service.embedding import Embedder
    from service.settings import Settings

QUESTION = "How does row-level security keep tenants apart?"
RESULTS = 5


def show_first_look(settings: Settings, database: Database, *, embedder: Embedder) -> None:
    """Search the demo and answer from it by the sources' own sentences; nothing leaves for it."""
    from rich.console import Console

    from service.answering import Answerer
    from service.ingestion.demo import DEMO_TENANT, DOCUMENTATION
    from service.pipeline import Pipeline
    from service.retrieval.request import RetrievalRequest

    pipeline = Pipeline(database.engine, settings, embedder=embedder)
    answerer = Answerer(database.engine, settings, embedder=embedder, pipeline=pipeline)
    request = RetrievalRequest(
        QUESTION,
        (DEMO_TENANT,),
        max_results=RESULTS,
        dataset_name=DOCUMENTATION,
        changes={"multidoc": False},
    )
    ready = answerer.prepare(request)
    given = answerer.answer(ready)
    console = Console(markup=False, highlight=False, stderr=True)
    typer.echo(f"\n{QUESTION}", err=True)
    console.print(tabulate_candidates(ready.retrieval.candidates))
    typer.echo(given.answer, err=True)
    for citation in given.citations:
        named = f"{citation.title}: {citation.header}" if citation.header else citation.title
        typer.echo(f"  [{citation.number}] {named}", err=True)
    typer.echo("", err=True)
