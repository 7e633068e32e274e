"""Engines, and the transactions that carry who is asking."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url

from service.db.failures import translated_errors
from service.db.guard import watched
from service.errors import InvalidInput

OWNER = "contextforge_owner"
TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}")


def open_engine(url: str, *, pool_size: int = 5, pool_timeout: float = 1.0) -> Engine:
    """Return an engine for the service; connections know pgvector's types."""
    engine = _open(url, pool_size=pool_size, max_overflow=0, pool_timeout=pool_timeout)

    @event.listens_for(engine, "connect")
    def know_vectors(connection: psycopg.Connection[Any], _: object) -> None:
        if psycopg.types.TypeInfo.fetch(connection, "vector") is not None:
            register_vector(connection)
        connection.rollback()

    return engine


def refuse_writes(engine: Engine) -> None:
    """Let every transaction of an engine only read from now on."""
    engine.dispose()

    @event.listens_for(engine, "connect")
    def only_read(connection: psycopg.Connection[Any], _: object) -> None:
        connection.read_only = True


def open_admin_engine(url: str) -> Engine:
    """Return an engine for administration: one connection, no vectors."""
    return _open(url, pool_size=1, max_overflow=0)


def know_vectors(connection: Connection) -> None:
    """Let a connection of an administrator send and read vectors too."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    register_vector(driver)


def _open(url: str, **pool: float) -> Engine:
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    return create_engine(
        parsed,
        pool_pre_ping=True,
        connect_args={"application_name": "contextforge", "connect_timeout": 10},
        **pool,
    )


@contextmanager
def tenant_transaction(engine: Engine, tenant_ids: Sequence[str]) -> Iterator[Connection]:
    """Run one transaction that may see exactly these tenants; commit at the end."""
    with translated_errors(), engine.begin() as connection, watched(connection):
        set_tenants(connection, tenant_ids)
        yield connection


@contextmanager
def plain_transaction(engine: Engine) -> Iterator[Connection]:
    """Run one transaction that names no tenant; commit at the end."""
    with translated_errors(), engine.begin() as connection, watched(connection):
        yield connection


@contextmanager
def owner_transaction(engine: Engine) -> Iterator[Connection]:
    """Run one transaction of an administrator as the owner of the schema; commit at the end."""
    with plain_transaction(engine) as connection:
        connection.exec_driver_sql(f"set local role {OWNER}")
        yield connection


def set_tenants(connection: Connection, tenant_ids: Sequence[str]) -> None:
    """Say for this transaction which tenants the API role may see."""
    for tenant_id in tenant_ids:
        if not TENANT_ID.fullmatch(tenant_id):
            raise InvalidInput(
                f'"{tenant_id}" cannot be a tenant id.',
                hint="Use up to 63 letters, digits and _ . : - after a letter or digit.",
            )
    # A literal SET LOCAL, not set_config(): only that reaches the workers of a Citus cluster.
    # The pattern above leaves nothing to quote.
    connection.exec_driver_sql(f"set local app.tenant_ids = '{','.join(tenant_ids)}'")
