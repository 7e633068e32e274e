"""Transactions on an engine or a session that belongs to somebody else; they only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import Lock
from typing import Any

import psycopg
from pgvector.psycopg.vector import VectorBinaryDumper, VectorDumper
from psycopg.types import TypeInfo
from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session, scoped_session

from service.db.engine import set_tenants
from service.db.failures import translated_errors
from service.db.guard import watched
from service.db.startup import check_login
from service.errors import DatabaseUnsuitable, InvalidInput

AnySession = Session | scoped_session[Session]

_CHECKED = "contextforge_checked"


def borrow_transactions(
    database: Engine | AnySession,
) -> Callable[[Sequence[str]], AbstractContextManager[Connection]]:
    """How a transaction for tenants is opened on an engine or a session."""
    if isinstance(database, Engine):
        return partial(engine_transaction, database)
    if isinstance(database, Session | scoped_session):
        return partial(session_transaction, database, lock=Lock())
    raise InvalidInput(
        f"A database cannot be reached by a {type(database).__name__}.",
        hint="Give a URL, a SQLAlchemy Engine or Session, or nothing for the settings'.",
    )


@contextmanager
def engine_transaction(engine: Engine, tenant_ids: Sequence[str]) -> Iterator[Connection]:
    """Run one transaction that may see exactly these tenants on an engine that others use too."""
    with translated_errors(), engine.connect() as connection:
        if _raw_connection(connection).autocommit:
            # A SET LOCAL would be over before the search began.
            connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin(), watched(connection):
            _prepare(connection)
            set_tenants(connection, tenant_ids)
            yield connection


@contextmanager
def session_transaction(
    session: AnySession, tenant_ids: Sequence[str], *, lock: Lock
) -> Iterator[Connection]:
    """Read within the session's own transaction, and leave it and its tenants as they were.

    The lock keeps threads apart: a session serves one at a time.
    """
    with lock, translated_errors():
        connection = session.connection()
        if _raw_connection(connection).autocommit:
            raise InvalidInput(
                "The session commits every statement by itself.",
                hint="Give the adapter the engine instead.",
            )
        # Rolled back whatever happens: that undoes the SET LOCAL, and there is nothing to keep.
        savepoint = connection.begin_nested()
        try:
            _prepare(connection)
            set_tenants(connection, tenant_ids)
            yield connection
        finally:
            savepoint.rollback()


def _raw_connection(connection: Connection) -> psycopg.Connection[Any]:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise InvalidInput(
            f'The engine speaks "{connection.dialect.name}+{connection.dialect.driver}".',
            hint="Make it with a URL that begins with postgresql+psycopg://",
        )
    return raw


def _prepare(connection: Connection) -> None:
    """Check the login once for each connection of the pool, and let it send vectors."""
    if _CHECKED not in connection.info:
        check_login(connection)
        _send_vectors(_raw_connection(connection))
        connection.info[_CHECKED] = True


def _send_vectors(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to send arrays as vectors; how it reads vectors is its owner's affair."""
    info = TypeInfo.fetch(connection, "public.vector")
    if info is None:
        raise DatabaseUnsuitable("This database has no pgvector.", hint="Run: contextforge migrate")
    info.register(connection)
    for dumper in (VectorDumper, VectorBinaryDumper):
        connection.adapters.register_dumper(
            "numpy.ndarray", type("_Dumper", (dumper,), {"oid": info.oid})
        )
