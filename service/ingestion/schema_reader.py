"""Schemas from a live database, through SQLAlchemy's inspection."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedForeignKeyConstraint
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SAWarning
from sqlalchemy.types import NullType

from service.errors import DatabaseUnavailable, InvalidInput, NotFound
from service.ingestion.schema_model import Column, ForeignKey, Schema, Table
from service.ingestion.schema_rows import DEFAULT_MASK, compile_mask, explain_failure, look_inside

OnTable = Callable[[int, int], None]

_STATEMENT_SECONDS = 5


def read_live_schema(
    url: str,
    *,
    schemas: Sequence[str] | None = None,
    samples: int = 3,
    mask: Sequence[str] = DEFAULT_MASK,
    on_progress: OnTable | None = None,
) -> Schema:
    """Read a database's tables without writing; no schemas: the default one.

    A masked column gives no sample values, and neither does a table that cannot be read in time;
    `on_progress` hears how many tables are done, and of how many.
    """
    masked = compile_mask(mask)
    with open_live_database(url) as connection:
        tables = _inspect_tables(connection, schemas)
        read = []
        for done, table in enumerate(tables, start=1):
            read.append(look_inside(connection, table, samples=samples, masked=masked))
            if on_progress is not None:
                on_progress(done, len(tables))
        return Schema(tuple(read), name=_database_name(connection.engine.url))


@contextmanager
def open_live_database(url: str) -> Iterator[sa.Connection]:
    """Connect to somebody's database for reading: it lets nothing be written, nor take long."""
    parsed = _parse_url(url)
    engine = _open_engine(parsed)
    try:
        with _explained(parsed), engine.connect() as connection:
            _forbid_writes(connection)
            yield connection
    finally:
        engine.dispose()


def _parse_url(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except ArgumentError as exc:
        raise InvalidInput(
            "The database URL cannot be understood.",
            hint="It looks like postgresql://user:password@host/database or sqlite:///file.db",
        ) from exc
    if parsed.drivername in {"postgres", "postgresql"}:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite":
        return _open_existing_file(parsed)
    return parsed


def _open_existing_file(url: sa.URL) -> sa.URL:
    """SQLite would create a file that is missing, and write into one that is opened plainly."""
    name = url.database
    if not name or name == ":memory:" or name.startswith("file:"):
        return url
    path = Path(name)
    if not path.is_file():
        raise NotFound(f'There is no SQLite file "{name}".')
    return url.set(
        database=path.resolve().as_uri(), query={**url.query, "mode": "ro", "uri": "true"}
    )


def _open_engine(url: sa.URL) -> sa.Engine:
    arguments: dict[str, Any] = {}
    if url.drivername == "postgresql+psycopg" and "connect_timeout" not in url.query:
        arguments["connect_timeout"] = 10
    try:
        engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=arguments)
    except NoSuchModuleError as exc:
        raise InvalidInput(
            f'"{url.drivername}" is no kind of database that SQLAlchemy knows.',
            hint="Install its dialect, or use postgresql, sqlite, mysql, mariadb, oracle or mssql.",
        ) from exc
    except ModuleNotFoundError as exc:
        raise InvalidInput(
            f'The driver "{exc.name}" for "{url.drivername}" is not installed.',
            hint=f"Install it, or name another one as in {url.get_backend_name()}+driver://",
        ) from exc
    if engine.dialect.is_async:
        raise InvalidInput(f'"{url.drivername}" is an asynchronous driver; name another one.')
    return engine


@contextmanager
def _explained(url: sa.URL) -> Iterator[None]:
    """Turn what any driver raises into one sentence that names the database, never a password."""
    try:
        yield
    except DBAPIError as exc:
        raise DatabaseUnavailable(
            f"The database {_place(url)} cannot be read: {explain_failure(exc)}.",
            hint="Check that it is up and that the URL is right.",
        ) from exc


def _place(url: sa.URL) -> str:
    host = f" on {url.host}" if url.host else ""
    return f'"{_database_name(url) or ""}"{host}'


def _database_name(url: sa.URL) -> str | None:
    if url.get_backend_name() == "sqlite" and url.database:
        return Path(unquote(url.database)).stem
    return url.database


def _forbid_writes(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("set transaction read only")
        connection.exec_driver_sql(f"set local statement_timeout = '{_STATEMENT_SECONDS}s'")
        connection.exec_driver_sql(f"set local lock_timeout = '{_STATEMENT_SECONDS}s'")
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql("pragma query_only = on")


# --- its structure ----------------------------------------------------------------------------


def _inspect_tables(connection: sa.Connection, schemas: Sequence[str] | None) -> list[Table]:
    inspector = sa.inspect(connection)
    if schemas is not None:
        _require_schemas(schemas, inspector.get_schema_names())
    tables = [
        table
        for schema in (dict.fromkeys(schemas) if schemas is not None else (None,))
        for table in _reflect(connection, inspector, schema=schema)
    ]
    tables.sort(key=lambda table: table.qualified_name)
    return _resolve_case(tables) if connection.dialect.name == "sqlite" else tables


def _require_schemas(schemas: Sequence[str], known: Sequence[str]) -> None:
    for schema in schemas:
        if schema not in known:
            raise NotFound(
                f'The database has no schema "{schema}".', hint=f"It has {', '.join(known)}."
            )


def _reflect(
    connection: sa.Connection, inspector: sa.Inspector, *, schema: str | None
) -> Iterator[Table]:
    """All tables of a schema, in a few statements however many they are."""
    default = inspector.default_schema_name
    types = _native_types(connection, schema or default)
    comments = _table_comments(inspector, schema)
    primary_keys = inspector.get_multi_pk_constraint(schema=schema)
    foreign_keys = inspector.get_multi_foreign_keys(schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SAWarning)  # types that SQLAlchemy does not know
        columns = inspector.get_multi_columns(schema=schema)
    for key, found in columns.items():
        primary_key = primary_keys.get(key)
        yield Table(
            name=key[1],
            schema=schema,
            columns=tuple(
                _read_column(each, inspector.dialect, native=types.get((key[1], each["name"])))
                for each in found
            ),
            comment=comments.get(key[1], ""),
            primary_key=tuple(primary_key["constrained_columns"]) if primary_key else (),
            foreign_keys=tuple(
                _read_key(each, default, named=schema is not None)
                for each in foreign_keys.get(key, ())
            ),
        )


def _table_comments(inspector: sa.Inspector, schema: str | None) -> dict[str, str]:
    if not inspector.dialect.supports_comments:
        return {}
    found = inspector.get_multi_table_comment(schema=schema).items()
    return {name: (comment["text"] or "").strip() for (_, name), comment in found}


def _native_types(connection: sa.Connection, schema: str | None) -> dict[tuple[str, str], str]:
    """PostgreSQL's own names of types: SQLAlchemy does not know those of extensions."""
    if connection.dialect.name != "postgresql":
        return {}
    rows = connection.execute(
        sa.text(
            "select c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)"
            " from pg_catalog.pg_attribute as a"
            " join pg_catalog.pg_class as c on c.oid = a.attrelid"
            " join pg_catalog.pg_namespace as n on n.oid = c.relnamespace"
            " where n.nspname = :schema and a.attnum > 0 and c.relkind in ('r', 'p', 'f')"
        ),
        {"schema": schema},
    )
    return {(table, column): name for table, column, name in rows}


def _read_column(column: ReflectedColumn, dialect: sa.Dialect, *, native: str | None) -> Column:
    return Column(
        name=column["name"],
        type=native or _spell_type(column["type"], dialect),
        comment=(column.get("comment") or "").strip(),
        nullable=column["nullable"],
    )


def _spell_type(type_: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> str:
    if isinstance(type_, NullType):
        return "unknown"
    spelt = type_.compile(dialect=dialect)
    return spelt if "'" in spelt else spelt.lower()  # the values of an enumeration keep their case


def _read_key(
    key: ReflectedForeignKeyConstraint, default: str | None, *, named: bool
) -> ForeignKey:
    """A foreign key; its table is named as the tables that are read are: with schema or without."""
    schema = key["referred_schema"] or default
    prefix = f"{schema}." if schema and (named or schema != default) else ""
    return ForeignKey(
        columns=tuple(key["constrained_columns"]),
        table=prefix + key["referred_table"],
        target_columns=tuple(key["referred_columns"]),
    )


def _resolve_case(tables: list[Table]) -> list[Table]:
    """Name the targets of foreign keys as they are declared: SQLite finds them in any case."""
    declared = {table.qualified_name.casefold(): table for table in tables}
    return [
        replace(
            table, foreign_keys=tuple(_declare_key(key, declared) for key in table.foreign_keys)
        )
        for table in tables
    ]


def _declare_key(key: ForeignKey, declared: Mapping[str, Table]) -> ForeignKey:
    table = declared.get(key.table.casefold())
    if table is None:
        return key
    names = {column.name.casefold(): column.name for column in table.columns}
    targets = tuple(names.get(name.casefold(), name) for name in key.target_columns)
    return replace(key, table=table.qualified_name, target_columns=targets)
