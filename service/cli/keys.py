"""contextforge keys: create, list, revoke."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, Yes, print_json, print_rows
from service.errors import NotFound

keys = typer.Typer(
    help="API keys: who may call the service for which tenants.", no_args_is_help=True
)

_SPAN = re.compile(r"([1-9][0-9]{0,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def parse_expiry(text: str) -> datetime:
    """Read 12h, 30d, 8w, or an ISO date or time (UTC unless it says otherwise)."""
    span = _SPAN.fullmatch(text.strip().lower())
    try:
        if span:
            return datetime.now(UTC) + timedelta(hours=int(span[1]) * _HOURS[span[2]])
        moment = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError) as exc:
        raise typer.BadParameter(
            f"{text!r} is neither a time span such as 30d, 12h or 8w nor a date such as 2030-01-31."
        ) from exc
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    *,
    tenant: Annotated[list[str], typer.Option(help="A tenant it opens; may be repeated.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="search, ingest or admin; may be repeated.", show_default="search"),
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="A group its holder is in, for acl; may be repeated.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="After how long, or when: 30d, 12h, 8w, 2030-01-31.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it, this once: only its hash is stored."""
    from service.db import registry

    expires_at = parse_expiry(expires) if expires else None
    with administer() as connection:
        created = registry.create_key(
            connection,
            name,
            tenant_ids=tenant,
            scopes=scope or ["search"],
            acl_groups=group or (),
            expires_at=expires_at,
        )
    if as_json:
        print_json({"key": created.text, **asdict(created.key)})
        return
    typer.echo(created.text)
    typer.echo(f"Key {created.key.key_id}: keep it, it is not shown again.", err=True)


@keys.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    from service.db import registry
    from service.types import ApiKey

    with administer() as connection:
        rows = registry.list_keys(connection)
    print_rows(rows, ApiKey, as_json=as_json)


@keys.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="As `keys list` shows it.")],
    yes: Yes = False,
) -> None:
    """Make a key useless from now on."""
    from service.db import registry

    if not yes:
        typer.confirm(f"Revoke key {key_id}?", abort=True)
    with administer() as connection:
        if not registry.revoke_key(connection, key_id):
            raise NotFound(f'There is no key "{key_id}".', hint="See: contextforge keys list")
    typer.echo(f"Key {key_id} is revoked.")
