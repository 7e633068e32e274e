"""contextforge run and contextforge serve."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.demo import describe_demo, load_demo_tenant
from service.cli.first_look import show_first_look
from service.errors import ServiceError

if TYPE_CHECKING:
    import uvicorn

    from service.db.database import Database
    from service.embedding import Embedder
    from service.settings import Settings

Host = Annotated[str | None, typer.Option(help="Address to listen on [CONTEXTFORGE_HOST].")]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Port to listen on [CONTEXTFORGE_PORT].")
]
WORKER_APP = "service.api.app:create_worker_app"


def run(
    host: Host = None,
    port: Port = None,
    no_demo: Annotated[
        bool, typer.Option("--no-demo", help="Leave the demo out of the embedded database.")
    ] = False,
) -> None:
    """Migrate where an administrator's URL is known, then serve: what `make run` does.

    An embedded database gets the demo, as `contextforge demo` loads it; a first search and an
    answer are shown. On a loopback address tenant demo then needs no API key.
    """
    from service.api.access import is_loopback
    from service.db.database import migrate_database, open_admin, open_database
    from service.embedding import load_embedder
    from service.settings import load_settings

    settings = load_settings()
    if settings.database_url is not None and settings.admin_database_url is not None:
        with open_admin(settings) as admin:
            service_url = settings.database_url.get_secret_value()
            migrate_database(admin.engine, settings, service_url=service_url)
    with open_database(settings, pool_size=settings.contextforge_pool_size) as database:
        typer.echo(f"Database: {_describe(database)}", err=True)
        embedder = load_embedder(settings.embedding_model)
        loaded = not no_demo and database.server is not None
        loaded = loaded and _load_demo(settings, database, embedder)
        demo = loaded and is_loopback(host or settings.contextforge_host)
        _serve_here(settings, database, host=host, port=port, embedder=embedder, demo=demo)


def serve(
    host: Host = None,
    port: Port = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes; they share the database alone.")
    ] = 1,
) -> None:
    """Serve the HTTP API until stopped; an embedded database is migrated first.

    SIGTERM lets requests that are in hand finish.
    """
    from service.db.database import open_database
    from service.settings import load_settings

    settings = load_settings()
    # Opened here and not by the application: a refusal is one line then, not a traceback.
    with open_database(settings, pool_size=settings.contextforge_pool_size) as database:
        typer.echo(f"Database: {_describe(database)}", err=True)
        if workers == 1:
            _serve_here(settings, database, host=host, port=port)
        else:
            _serve_by_workers(settings, host=host, port=port, workers=workers)


def _serve_here(
    settings: Settings,
    database: Database,
    *,
    host: str | None,
    port: int | None,
    embedder: Embedder | None = None,
    demo: bool = False,
) -> None:
    """Serve in this process; the address is printed once requests are taken."""
    import uvicorn

    from service.api.app import create_app
    from service.api.logs import configure_logs
    from service.api.server import AnnouncedServer, bind_address

    configure_logs(settings)
    app = create_app(settings, database=database, embedder=embedder, demo=demo, warm=True)
    config = uvicorn.Config(app, **_list_options(settings, host=host, port=port))
    server = AnnouncedServer(config, announce=lambda: _show_address(config, demo=demo))
    server.run(sockets=[bind_address(config)])


def _serve_by_workers(
    settings: Settings, *, host: str | None, port: int | None, workers: int
) -> None:
    import uvicorn

    from service.api.logs import configure_logs
    from service.api.server import serve_by_workers

    configure_logs(settings)
    with tempfile.TemporaryDirectory(prefix="contextforge-metrics-") as folder:
        # The library's one way to add up the figures of several processes.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        options = _list_options(settings, host=host, port=port)
        serve_by_workers(uvicorn.Config(WORKER_APP, factory=True, workers=workers, **options))


def _list_options(settings: Settings, *, host: str | None, port: int | None) -> dict[str, Any]:
    return {
        "host": host or settings.contextforge_host,
        "port": port or settings.contextforge_port,
        "log_config": None,
        "log_level": settings.contextforge_log_level,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": int(settings.contextforge_request_seconds) + 5,
    }


def _show_address(config: uvicorn.Config, *, demo: bool) -> None:
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{config.port}"
    typer.echo(f"Serving on {url} (API: {url}/docs). Stop with Ctrl+C.", err=True)
    if demo:
        typer.echo("Tenant demo needs no API key from this machine.", err=True)


def _load_demo(settings: Settings, database: Database, embedder: Embedder) -> bool:
    started = time.monotonic()
    try:
        report = load_demo_tenant(settings, database, embedder=embedder)
        typer.echo(describe_demo(report, seconds=time.monotonic() - started), err=True)
        show_first_look(settings, database, embedder=embedder)
    except ServiceError as exc:
        # The demo is an extra: without it the service is as good as ever.
        typer.echo(f"warning: the demo was not loaded: {exc}", err=True)
        return False
    return True


def _describe(database: Database) -> str:
    if database.server is None:
        return database.engine.url.render_as_string(hide_password=True)
    return f"embedded PostgreSQL, its log is {database.server.log_file}"
