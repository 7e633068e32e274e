"""contextforge migrate."""

from __future__ import annotations

from typing import Annotated

import typer


def migrate(
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL instead of running it.")
    ] = False,
) -> None:
    """Bring the database to the newest schema and functions; again changes nothing."""
    from service.db.database import find_service_url, migrate_database, open_admin
    from service.db.migrate import print_migration
    from service.settings import load_settings

    settings = load_settings()
    if sql:
        typer.echo(print_migration(settings.embedding_dim), nl=False)
        return
    with open_admin(settings, migrated=False) as admin:
        service_url = find_service_url(settings, admin.server)
        done = migrate_database(admin.engine, settings, service_url=service_url)
    moved = "Already at" if done.before == done.after else f"From {done.before or 'nothing'} to"
    typer.echo(f"{moved} migration {done.after}; {done.functions} functions applied.")
