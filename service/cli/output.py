"""How results are printed: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def print_rows(
    rows: Sequence[DataclassInstance], kind: type[DataclassInstance], *, as_json: bool
) -> None:
    """Print a list of frozen values, one column a field."""
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, field in enumerate(fields(kind)):
        table.add_column(field.name.replace("_", " "), overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_show(getattr(row, field.name)) for field in fields(kind)))
    Console(markup=False, highlight=False).print(table)


def print_json(value: object) -> None:
    """Print a value as JSON, times in ISO 8601."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_encode))


def _encode(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _show(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)
