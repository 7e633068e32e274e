"""contextforge demo: knowledge that ships with the project, as tenant demo."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from service.cli.ingesting import show_progress
from service.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from service.db.database import Database
    from service.embedding import Embedder
    from service.ingestion.demo import DemoReport
    from service.settings import Settings


def demo(as_json: AsJson = False) -> None:
    """Load the project's documentation and a sales database's schema as tenant demo."""
    from service.db.database import open_database
    from service.settings import load_settings

    settings = load_settings()
    started = time.monotonic()
    with open_database(settings) as database:
        report = load_demo_tenant(settings, database)
    if as_json:
        print_json(asdict(report))
    else:
        typer.echo(describe_demo(report, seconds=time.monotonic() - started))
    if report.rejected:
        raise typer.Exit(1)


def load_demo_tenant(
    settings: Settings, database: Database, *, embedder: Embedder | None = None
) -> DemoReport:
    """Load the demo behind a progress bar; its tenant is created where an administrator is known.

    Without one the tenant must be there already.
    """
    from service.embedding import load_embedder
    from service.ingestion.demo import load_demo, read_demo

    if settings.database_url is None or settings.admin_database_url is not None:
        _create_tenant(settings)
    knowledge = read_demo()
    embedder = embedder or load_embedder(settings.embedding_model)
    with show_progress("demo", total=knowledge.size) as on_progress:
        return load_demo(knowledge, database.engine, embedder=embedder, on_progress=on_progress)


def describe_demo(report: DemoReport, *, seconds: float) -> str:
    """What is loaded, in one line, and what was left out."""
    parts = (report.docs, report.sales_db)
    loaded = (
        f"Demo: tenant demo has datasets docs ({report.docs.nodes} nodes) and sales_db "
        f"({report.sales_db.nodes} nodes); {sum(part.embedded for part in parts)} embedded, "
        f"{seconds:.1f} s."
    )
    bad = (f"rejected {each.source}: {each.reason}" for each in report.rejected)
    return "\n".join((loaded, *bad))


def _create_tenant(settings: Settings) -> None:
    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.db.registry import create_tenant
    from service.ingestion.demo import DEMO_TENANT

    with open_admin(settings) as admin, owner_transaction(admin.engine) as connection:
        create_tenant(connection, DEMO_TENANT, display_name="Demo")
