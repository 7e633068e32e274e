"""What stands in the tables of a live database: how many rows, and values that may be shown."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from service.errors import InvalidInput
from service.ingestion.schema_model import Column, Scalar, Table, snake_case

# Searched in the column's name in snake case: a column that matches is never read.
DEFAULT_MASK = (
    r"e_?mail",
    r"phone|mobile|\bfax\b",
    r"passw|passphrase|\bpwd\b|\bpin\b",
    r"secret|token|api_?key|private_?key|credential",
    r"\bssn\b|social_security|passport|tax_id|national_id",
    r"iban|card_number|\bcvv\b|account_number",
    r"birth|\bdob\b",
)

_EXACT_ROWS = 10_000  # beyond it the statistics of the database are as good and cost nothing
_MOST_ROWS = 1_000_000  # counted where there are no statistics; beyond it nobody waits
_SAMPLED_ROWS = 500
_LONGEST_SAMPLE = 60
_TEXT_TYPE = re.compile(r"(\w*text|[\w ]*char[\w ]*|\w*clob|string)(\(\d+\))?", re.IGNORECASE)
_UNREADABLE_TYPE = re.compile(r"bytea|blob|binary|image|vector|geometry|geography", re.IGNORECASE)

_log = logging.getLogger(__name__)


def compile_mask(patterns: Sequence[str]) -> re.Pattern[str] | None:
    """One expression for all patterns; a wrong one is named."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as exc:
            raise InvalidInput(f'The mask "{pattern}" is no regular expression: {exc}.') from exc
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined, re.IGNORECASE) if joined else None


def look_inside(
    connection: sa.Connection, table: Table, *, samples: int, masked: re.Pattern[str] | None
) -> Table:
    """The table with its row count and sample values, as far as it lets itself be read."""
    with _tolerated(connection, table):
        count, estimated = _count_rows(connection, table)
        table = replace(table, row_count=count, row_count_estimated=estimated)
    if samples > 0:
        with _tolerated(connection, table):
            table = _sample(connection, table, samples=samples, masked=masked)
    return table


@contextmanager
def _tolerated(connection: sa.Connection, table: Table) -> Iterator[None]:
    """One locked, forbidden or slow table must not cost the rest; a lost connection does."""
    try:
        with connection.begin_nested():
            yield
    except DBAPIError as exc:
        if exc.connection_invalidated:
            raise
        _log.warning("rows of table %s not read: %s", table.qualified_name, explain_failure(exc))


def _count_rows(connection: sa.Connection, table: Table) -> tuple[int | None, bool]:
    """How many rows, and whether that is an estimate: exact for small tables."""
    estimate = _estimate_rows(connection, table)
    most = _MOST_ROWS if estimate is None else _EXACT_ROWS
    first = sa.select(sa.literal(1)).select_from(_selectable(table)).limit(most + 1).subquery()
    counted = connection.scalar(sa.select(sa.func.count()).select_from(first)) or 0
    if counted <= most:
        return counted, False
    return (None, False) if estimate is None else (max(estimate, counted), True)


def _estimate_rows(connection: sa.Connection, table: Table) -> int | None:
    """What the statistics say; -1 in PostgreSQL: never analysed, so only counting helps."""
    if connection.dialect.name != "postgresql":
        return None
    quoted = connection.dialect.identifier_preparer.format_table(_selectable(table))
    found = connection.scalar(
        sa.text("select reltuples::bigint from pg_catalog.pg_class where oid = to_regclass(:name)"),
        {"name": quoted},
    )
    return found if found is not None and found >= 0 else None


def _sample(
    connection: sa.Connection, table: Table, *, samples: int, masked: re.Pattern[str] | None
) -> Table:
    """The first distinct values of each column; a masked one is not even asked for."""
    wanted = [
        column
        for column in table.columns
        if not _is_masked(column.name, masked) and not _UNREADABLE_TYPE.search(column.type)
    ]
    if not wanted:
        return table
    statement = sa.select(*(_read_start(column) for column in wanted))
    # By the primary key: the same rows next time, so that nothing is embedded again for nothing.
    ordered = statement.select_from(_selectable(table)).order_by(
        *(sa.column(name) for name in table.primary_key)
    )
    rows = connection.execute(ordered.limit(_SAMPLED_ROWS)).all()
    found = {
        column.name: _distinct(values, samples=samples)
        for column, values in zip(wanted, zip(*rows, strict=True), strict=False)
    }
    return replace(
        table,
        columns=tuple(
            replace(column, sample_values=found.get(column.name, ())) for column in table.columns
        ),
    )


def _read_start(column: Column) -> sa.ColumnElement[Any]:
    """The column, or the first part of its text: a value may be as long as a book."""
    whole: sa.ColumnElement[Any] = sa.column(column.name)
    if _TEXT_TYPE.fullmatch(column.type):
        return sa.func.substr(whole, 1, 4 * _LONGEST_SAMPLE)
    return whole


def _selectable(table: Table) -> sa.TableClause:
    """The table by name only: reflected types would parse values, and fail at odd ones."""
    return sa.table(table.name, schema=table.schema)


def _distinct(values: Sequence[object], *, samples: int) -> tuple[Scalar, ...]:
    found: dict[tuple[type, Scalar], None] = {}
    for value in values:
        sample = _shorten(value)
        if sample is not None:
            found[type(sample), sample] = None
        if len(found) == samples:
            break
    return tuple(sample for _, sample in found)


def _shorten(value: object) -> Scalar | None:
    """The value as JSON can hold it and a reader can take it in; binary ones say nothing."""
    if value is None or isinstance(value, bytes | memoryview):
        return None
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return None
    if isinstance(value, float):
        return value
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, default=str, ensure_ascii=False)
    text = " ".join(str(value).replace("\x00", " ").split())
    if not text:
        return None
    return text if len(text) <= _LONGEST_SAMPLE else f"{text[: _LONGEST_SAMPLE - 1]}…"


def explain_failure(exc: DBAPIError) -> str:
    """What the driver says, in a line without its full stop."""
    lines = str(exc.orig).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(exc.orig).__name__


def _is_masked(column: str, masked: re.Pattern[str] | None) -> bool:
    """Match both the name and its words: spaces let a pattern ask for a whole word."""
    snake = snake_case(column)
    words = snake.replace("_", " ")
    return masked is not None and any(masked.search(name) for name in (column, snake, words))
