"""Whether an example's SQL still fits a schema, by sqlglot: one query, known tables and columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import Dialect, exp, parse
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from service.errors import InvalidInput

Columns = Mapping[str, Collection[str]]
"""The columns of each table, both in lower case."""

# A table is meant by its bare name too where it stands in the schema nobody spells out.
_DEFAULT_SCHEMAS = {"public", "main", "dbo"}
_SYSTEM_COLUMNS = {"ctid", "oid", "rowid", "tableoid", "xmax", "xmin"}


def check_dialect(name: str) -> str:
    """Return the name of a dialect sqlglot knows."""
    try:
        Dialect.get_or_raise(name)
    except ValueError as exc:
        raise InvalidInput(
            f'"{name}" is no dialect of SQL.', hint="Use postgres, sqlite, mysql, tsql or another."
        ) from exc
    return name


def find_flaw(sql: str, columns: Columns, *, dialect: str) -> str | None:
    """Say what is wrong with a query on these tables; None if nothing is found."""
    query = parse_query(sql, dialect=dialect)
    if isinstance(query, str):
        return query
    for identifier in query.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    unknown = next(_bind_tables(query, columns), None)
    if unknown is not None:
        return f'There is no table "{unknown}".'
    return _find_missing_column(query, columns, dialect=dialect)


def parse_query(sql: str, *, dialect: str) -> exp.Query | str:
    """The one query that a text is, or what it is instead."""
    try:
        statements = [each for each in parse(sql, read=dialect) if each is not None]
    except SqlglotError as exc:
        return f"It cannot be parsed: {_first_line(exc)}."
    if len(statements) != 1:
        return f"It is {len(statements)} statements, not one."
    [query] = statements
    return query if isinstance(query, exp.Query) else "It is no query."


def _first_line(error: SqlglotError) -> str:
    """The reason without the excerpt, which is coloured for terminals."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        reason = str(first["description"]).rstrip(".")
        return f"{reason}, line {first['line']}, column {first['col']}"
    return str(error).splitlines()[0].rstrip(".")


def _bind_tables(query: exp.Query, columns: Columns) -> Iterator[str]:
    """Give each table the name it is stored under; yield those that are not stored."""
    own = {each.alias_or_name for each in query.find_all(exp.CTE)}
    for table in list(query.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or (table.name in own and not table.db):
            continue
        stored = _find_table(table, columns)
        if stored is None:
            yield ".".join(part.name for part in table.parts)
            continue
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
        table.set("this", exp.to_identifier(stored, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
    for column in query.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)


def _find_table(table: exp.Table, columns: Columns) -> str | None:
    whole = ".".join(part.name for part in table.parts)
    if whole in columns:
        return whole
    if table.db in _DEFAULT_SCHEMAS and table.name in columns:
        return table.name
    if table.db:
        return None
    matching = [name for name in columns if name.rpartition(".")[2] == table.name]
    return matching[0] if len(matching) == 1 else None


def _find_missing_column(query: exp.Query, columns: Columns, *, dialect: str) -> str | None:
    schema: dict[str, object] = {
        f'"{table}"': dict.fromkeys(each, "text") for table, each in columns.items()
    }
    try:
        qualified = qualify(
            query,
            schema=schema,
            dialect=dialect,
            expand_stars=False,
            allow_partial_qualification=True,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        scopes = list(traverse_scope(qualified))
    except SqlglotError as exc:
        return f"It cannot be understood: {_first_line(exc)}."
    flaws = (
        flaw
        for scope in scopes
        for column in scope.columns
        # SQLite reads double quotes as text where no such column is.
        if not (dialect == "sqlite" and column.this.args.get("quoted") and not column.table)
        and (flaw := _find_column_flaw(column, scope, columns=columns))
    )
    return next(flaws, None)


def _find_column_flaw(column: exp.Column, scope: Scope, *, columns: Columns) -> str | None:
    name, table = column.name, column.table
    if name in _SYSTEM_COLUMNS or isinstance(column.this, exp.Star):
        return None
    if not table:
        known_here = _is_alias(column, scope) or _may_have(scope, name)
        return None if known_here else f'No table of it has a column "{name}".'
    source = _find_source(scope, table)
    if source is None:
        return f'"{table}" is no table of it.'
    if isinstance(source, exp.Table):
        known = columns.get(source.name)
        missing = known is not None and name not in known
    else:
        missing = _gives_columns(source) and name not in _list_results(source)
    return f'Table "{_show(source, table)}" has no column "{name}".' if missing else None


def _show(source: exp.Table | Scope, table: str) -> str:
    return source.name if isinstance(source, exp.Table) else table


def _find_source(scope: Scope | None, table: str) -> exp.Table | Scope | None:
    """What a name stands for: in the query itself, or in one around it."""
    while scope is not None:
        if table in scope.sources:
            found: exp.Table | Scope = scope.sources[table]
            return found
        scope = scope.parent
    return None


def _is_alias(column: exp.Column, scope: Scope) -> bool:
    """Whether a bare name stands where a result column may be named, and is one."""
    clause = column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Query)
    return not isinstance(clause, exp.Query) and column.name in _list_results(scope)


def _list_results(scope: Scope) -> list[str]:
    query = scope.expression
    return query.named_selects if isinstance(query, exp.Query) else []


def _may_have(scope: Scope | None, name: str) -> bool:
    """Whether a bare name may be a whole row, or a column of what does not tell its columns."""
    while scope is not None:
        if name in scope.sources:
            return True
        for source in scope.sources.values():
            if not isinstance(source, exp.Table) and not _gives_columns(source):
                return True
            if isinstance(source, exp.Table) and not isinstance(source.this, exp.Identifier):
                return True
        scope = scope.parent
    return False


def _gives_columns(scope: Scope) -> bool:
    """Whether all columns of a subquery are known by name."""
    query = scope.expression
    return isinstance(query, exp.Query) and not query.is_star and not scope.is_udtf
