"""contextforge mcp: tools for language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.errors import InvalidInput, SettingsError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from service.api.state import Services
    from service.settings import Settings

DEFAULT_PORT = 8001


def mcp(
    *,
    tenant: Annotated[
        str | None, typer.Option(help="One of the key's tenants, if it has several.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(help="File with the API key, instead of CONTEXTFORGE_API_KEY."),
    ] = None,
    http: Annotated[
        bool,
        typer.Option("--http", help="Serve over HTTP; every request then brings its own key."),
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on with --http [CONTEXTFORGE_HOST].")
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port to listen on with --http.")
    ] = DEFAULT_PORT,
) -> None:
    """Serve MCP: search, fetch, get_context, answer and describe_schema, under a key's rights."""
    _require_package()
    from service.api.logs import configure_logs
    from service.api.metrics import Metrics
    from service.api.state import open_services
    from service.settings import load_settings

    if http and (tenant is not None or key_file is not None):
        raise typer.BadParameter("with --http every request brings its own key and X-Tenant")
    settings = load_settings()
    configure_logs(settings)
    key = None if http else _read_key(settings, key_file)
    with open_services(settings, metrics=Metrics()) as services:
        if key is None:
            _serve_http(services, host=host or settings.contextforge_host, port=port)
        else:
            from service.mcp.serving import serve_stdio

            serve_stdio(services, key, tenant=tenant)


def _serve_http(services: Services, *, host: str, port: int) -> None:
    import uvicorn

    from service.mcp.serving import PATH, create_http_app

    typer.echo(f"MCP: http://{host}:{port}{PATH}", err=True)
    app = create_http_app(services, host=host)
    uvicorn.run(app, host=host, port=port, log_config=None, access_log=False)


def _read_key(settings: Settings, key_file: Path | None) -> SecretStr:
    """Return the key; it is never an argument, which every user of the machine could read."""
    from pydantic import SecretStr

    if key_file is not None:
        try:
            return SecretStr(key_file.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"{key_file} cannot be read.") from exc
    if settings.contextforge_api_key is None:
        raise SettingsError(
            "contextforge mcp needs an API key.",
            hint="Set CONTEXTFORGE_API_KEY, or name a file with --key-file.",
        )
    return settings.contextforge_api_key


def _require_package() -> None:
    try:
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as exc:
        raise InvalidInput(
            "contextforge mcp needs the package mcp, version 2.3 or later.",
            hint="Install it with: pip install 'contextforge[mcp]'",
        ) from exc
