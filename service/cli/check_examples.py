"""contextforge check-examples: quarantine examples whose SQL no longer fits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from service.cli.ingesting import DryRun, show_progress
from service.cli.output import AsJson, print_json, print_rows


def check_examples(
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant whose examples to check.")],
    dataset: Annotated[str, typer.Option("--dataset", help="The dataset they stand in.")],
    against: Annotated[
        str | None, typer.Option(help="URL of a database to plan the queries on, by EXPLAIN.")
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="Dialect of the SQL, where no database tells it.")
    ] = "postgres",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Check each example's SQL against the stored schema, or a live database.

    The broken are marked and no longer returned; those that are repaired are unmarked. The exit
    status is 1 if any is broken.
    """
    from service.db.database import open_database
    from service.ingestion.check_examples import BrokenExample, ExampleCheck
    from service.settings import load_settings

    with open_database(load_settings()) as database, show_progress("check", total=None) as done:
        check = ExampleCheck(database.engine, tenant, dataset, dry_run=dry_run)
        report = check.run(dialect=dialect, against=against, on_progress=done)
    if as_json:
        print_json(asdict(report))
    else:
        if report.broken:
            print_rows(report.broken, BrokenExample, as_json=False)
        typer.echo(
            f"{report.checked} examples checked: {len(report.broken)} broken, "
            f"{report.quarantined} newly quarantined, {report.released} released."
        )
    if report.broken:
        raise typer.Exit(1)
