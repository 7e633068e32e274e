"""contextforge run and contextforge serve."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.demo import describe_demo, load_demo_tenant
from service.errors import ServiceError

if TYPE_CHECKING:
    from service.db.database import Database
    from service.settings import Settings

Host = Annotated[str | None, typer.Option(help="Address to listen on [CONTEXTFORGE_HOST].")]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port to listen on [CONTEXTFORGE_PORT].")
]


def run(
    host: Host = None,
    port: Port = None,
    no_demo: Annotated[
        bool, typer.Option("--no-demo", help="Leave the demo out of the embedded database.")
    ] = False,
) -> None:
    """Migrate where an administrator's URL is known, then serve: what `make run` does.

    An embedded database gets the demo, as `contextforge demo` loads it.
    """
    from service.db.database import migrate_database, open_admin
    from service.settings import load_settings

    settings = load_settings()
    if settings.database_url is not None and settings.admin_database_url is not None:
        with open_admin(settings) as admin:
            service_url = settings.database_url.get_secret_value()
            migrate_database(admin.engine, settings, service_url=service_url)
    _serve(settings, host=host, port=port, with_demo=not no_demo)


def serve(host: Host = None, port: Port = None) -> None:
    """Serve the HTTP API until stopped; an embedded database is migrated first."""
    from service.settings import load_settings

    _serve(load_settings(), host=host, port=port)


def _serve(
    settings: Settings, *, host: str | None, port: int | None, with_demo: bool = False
) -> None:
    import uvicorn

    from service.api.app import create_app
    from service.db.database import open_database

    # Opened here and not by the application: a refusal is one line then, not a traceback.
    with open_database(settings) as database:
        typer.echo(f"Database: {_describe(database)}", err=True)
        if with_demo and database.server is not None:
            _load_demo(settings, database)
        uvicorn.run(
            create_app(settings, database=database),
            host=host or settings.contextforge_host,
            port=port or settings.contextforge_port,
            log_level=settings.contextforge_log_level,
        )


def _load_demo(settings: Settings, database: Database) -> None:
    started = time.monotonic()
    try:
        report = load_demo_tenant(settings, database)
    except ServiceError as exc:
        # The demo is an extra: without it the service is as good as ever.
        typer.echo(f"warning: the demo was not loaded: {exc}", err=True)
    else:
        typer.echo(describe_demo(report, seconds=time.monotonic() - started), err=True)


def _describe(database: Database) -> str:
    if database.server is None:
        return database.engine.url.render_as_string(hide_password=True)
    return f"embedded PostgreSQL, its log is {database.server.log_file}"
