"""contextforge doctor."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from service.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from service.db.doctor import Check

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


def doctor(as_json: AsJson = False) -> None:
    """Check versions, roles, row-level security, migrations and statistics; exit 1 if one fails."""
    from service.db.database import open_admin
    from service.db.doctor import examine
    from service.settings import load_settings

    settings = load_settings()
    with open_admin(settings) as admin:
        checks = examine(admin, settings)
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            _print_check(check)
    if any(check.status == "failed" for check in checks):
        raise typer.Exit(1)


def _print_check(check: Check) -> None:
    status = typer.style(f"{check.status:<8}", fg=_COLOURS[check.status])
    typer.echo(f"{status} {check.name}: {check.detail}")
    if check.remedy:
        typer.echo(f"         -> {check.remedy}")
