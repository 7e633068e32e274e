"""contextforge audit: repeat searches exactly and see what the ANN index missed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from service.cli.output import AsJson, print_json


def audit(
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose searches to repeat.")],
    questions: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Search for questions that were asked through the ANN index and exactly, and compare.

    Titles stand in where no questions are kept. Exit status 1 says that recall is below
    CONTEXTFORGE_AUDIT_LEAST_RECALL.
    """
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.quality.audit import audit_tenant
    from service.settings import load_settings

    settings = load_settings()
    with open_database(settings) as database:
        report = audit_tenant(
            database.engine,
            tenant,
            embedder=load_embedder(settings.embedding_model),
            questions=questions,
            least_recall=settings.contextforge_audit_least_recall,
        )
    if as_json:
        print_json(asdict(report))
    elif report.recall is None:
        typer.echo(f"{tenant} is searched exactly: there is nothing to audit.")
    else:
        typer.echo(
            f"{tenant}: recall {report.recall:.3f} on {report.audited} {report.source}, "
            f"searched by {report.path}; at least {report.least_recall:g} is asked for."
        )
    if report.remedy is not None:
        typer.echo(f"warning: {report.remedy}", err=True)
        raise typer.Exit(1)
