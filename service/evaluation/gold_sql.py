"""Tables and columns that a gold query needs, by sqlglot (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

_DIALECT = "sqlite"  # reads double quotes as text where no such column is, as the public sets do


@dataclass(frozen=True, slots=True)
class NeededFields:
    """What a query reads, in lower case: tables, and columns as (table, column)."""

    tables: frozenset[str]
    columns: frozenset[tuple[str, str]]


def find_tables(sql: str) -> frozenset[str]:
    """The tables of a query in lower case, without names it gives itself; none if unreadable."""
    try:
        query = parse_one(sql, read=_DIALECT)
    except SqlglotError:
        return frozenset()
    own = {each.alias_or_name.lower() for each in query.find_all(exp.CTE)}
    return frozenset(each.name.lower() for each in query.find_all(exp.Table)) - own


def find_needed(sql: str, columns: Mapping[str, Sequence[str]]) -> NeededFields | None:
    """What a query reads of tables with these columns; None if it cannot be resolved."""
    types = {
        table.lower(): {column.lower(): "text" for column in each}
        for table, each in columns.items()
    }
    try:
        query = qualify(
            parse_one(sql, read=_DIALECT),
            schema=dict(types),
            dialect=_DIALECT,
            expand_stars=False,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        found = {
            (source.name.lower(), column.name.lower())
            for scope in traverse_scope(query)
            for column in scope.columns
            if isinstance(source := scope.sources.get(column.table), exp.Table)
        }
    except SqlglotError:
        return None
    known = {(table, column) for table, column in found if column in types.get(table, ())}
    return NeededFields(find_tables(sql), frozenset(known))
