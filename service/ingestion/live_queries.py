"""Whether a live database understands a query: EXPLAIN, which plans it and does not run it."""

from __future__ import annotations

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from service.errors import InvalidInput
from service.ingestion.example_sql import parse_query
from service.ingestion.schema_rows import explain_failure

# With options in parentheses already there, a query cannot bring its own, such as (analyze).
_EXPLAIN = {
    "postgresql": "explain (costs off) ",
    "sqlite": "explain query plan ",
    "mysql": "explain ",
    "mariadb": "explain ",
}
_DIALECTS = {"postgresql": "postgres", "sqlite": "sqlite", "mysql": "mysql", "mariadb": "mysql"}


def find_live_flaw(connection: sa.Connection, sql: str) -> str | None:
    """Say why the database cannot plan a query; None if it can."""
    name = connection.dialect.name
    if name not in _EXPLAIN:
        raise InvalidInput(
            f"Queries cannot be checked on {name}.",
            hint="Use PostgreSQL, SQLite, MySQL or MariaDB, or leave --against out.",
        )
    query = parse_query(sql, dialect=_DIALECTS[name])
    if isinstance(query, str):
        return query
    try:
        with connection.begin_nested():
            _execute(connection, _EXPLAIN[name] + sql.strip().rstrip(";"))
    except DBAPIError as exc:
        if exc.connection_invalidated:
            raise
        return f"The database refuses it: {explain_failure(exc)}."
    return None


def _execute(connection: sa.Connection, statement: str) -> None:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        connection.exec_driver_sql(statement)
        return
    try:
        # Prepared, the server takes one statement only, whatever our parser made of the text.
        raw.execute(statement.encode(), prepare=True)
    except psycopg.Error as exc:
        raise DBAPIError(statement, None, exc, connection_invalidated=raw.closed) from exc
