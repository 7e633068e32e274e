"""The database the settings name, ready to use: the embedded server, or one that runs elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr
from sqlalchemy import Engine
from sqlalchemy.exc import ProgrammingError

from service.db.embedded import EmbeddedServer
from service.db.engine import open_admin_engine, open_engine, plain_transaction
from service.db.migrate import Migration, ensure_service_login, migrate
from service.db.startup import check_dimension, check_login
from service.errors import DatabaseUnavailable, SettingsError
from service.settings import Settings

DATABASE = "contextforge"
SERVICE_LOGIN = "contextforge_service"

_ATTEMPT = re.compile(r"connection (?:failed|is bad): ")


@dataclass(frozen=True, slots=True)
class Database:
    """An open database; `server` is the embedded one that is held for it, if it is embedded."""

    engine: Engine
    url: str = field(repr=False)
    server: EmbeddedServer | None = None


@contextmanager
def open_database(settings: Settings, *, pool_size: int = 5) -> Iterator[Database]:
    """Open the database for the service, refusing one that is not safe to run on."""
    if settings.database_url is None and settings.admin_database_url is not None:
        raise SettingsError(
            "ADMIN_DATABASE_URL is set, but DATABASE_URL is not.",
            hint="Set DATABASE_URL to the login of the service, or unset both for the embedded "
            "server.",
        )
    with _find_place(settings, settings.database_url, user=SERVICE_LOGIN) as place:
        engine = open_engine(place.url, pool_size=pool_size)
        try:
            _reach(engine, "DATABASE_URL")
            with plain_transaction(engine) as connection:
                check_login(connection)
                check_dimension(connection, settings.embedding_dim)
            yield Database(engine, place.url, place.server)
        finally:
            engine.dispose()


@contextmanager
def open_admin(settings: Settings, *, migrated: bool = True) -> Iterator[Database]:
    """Open the database for administration; an embedded one is migrated first if so asked."""
    if settings.database_url is not None and settings.admin_database_url is None:
        raise SettingsError(
            "This needs an administrator: DATABASE_URL is set, but ADMIN_DATABASE_URL is not.",
            hint="Set it to the same database with a login that may create roles.",
        )
    with _find_place(
        settings, settings.admin_database_url, user="postgres", migrated=migrated
    ) as place:
        engine = open_admin_engine(place.url)
        try:
            _reach(engine, "ADMIN_DATABASE_URL")
            yield Database(engine, place.url, place.server)
        finally:
            engine.dispose()


def migrate_database(engine: Engine, settings: Settings, *, service_url: str | None) -> Migration:
    """Bring a database to the head on an administrator's engine, with the login of the service."""
    done = migrate(engine, embedding_dim=settings.embedding_dim)
    if service_url is not None:
        ensure_service_login(engine, service_url)
    return done


def find_service_url(settings: Settings, server: EmbeddedServer | None) -> str | None:
    """Return the URL the service uses, None where only the administrator's is known."""
    if server is not None:
        return server.url(SERVICE_LOGIN, DATABASE)
    return None if settings.database_url is None else settings.database_url.get_secret_value()


@dataclass(frozen=True, slots=True)
class _Place:
    url: str
    server: EmbeddedServer | None


@contextmanager
def _find_place(
    settings: Settings, url: SecretStr | None, *, user: str, migrated: bool = True
) -> Iterator[_Place]:
    if url is not None:
        yield _Place(url.get_secret_value(), None)
        return
    with EmbeddedServer(settings.contextforge_data_dir) as server:
        _create_database(server)
        if migrated:
            _prepare_embedded(server, settings)
        yield _Place(server.url(user, DATABASE), server)


def _prepare_embedded(server: EmbeddedServer, settings: Settings) -> None:
    engine = open_admin_engine(server.admin_url(DATABASE))
    try:
        migrate_database(engine, settings, service_url=find_service_url(settings, server))
    finally:
        engine.dispose()


def _create_database(server: EmbeddedServer) -> None:
    with ExitStack() as stack:
        engine = open_admin_engine(server.admin_url())
        stack.callback(engine.dispose)
        connection = stack.enter_context(engine.connect())
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        statement = "select true from pg_database where datname = %s"
        if not connection.exec_driver_sql(statement, (DATABASE,)).scalar():
            try:
                connection.exec_driver_sql(f"create database {DATABASE}")
            except ProgrammingError as exc:
                # Another process created it a moment ago.
                if getattr(exc.orig, "sqlstate", None) != "42P04":
                    raise


def _reach(engine: Engine, setting: str) -> None:
    try:
        with plain_transaction(engine):
            pass
    except DatabaseUnavailable as exc:
        raise DatabaseUnavailable(
            f"The database of {setting} cannot be used: {_shorten(exc.message)}",
            hint=f"Check that PostgreSQL is up and {setting} is right.",
        ) from exc


def _shorten(message: str) -> str:
    """Return the last attempt's reason, without the driver's advice, as the end of a sentence."""
    reason = _ATTEMPT.split(" ".join(message.split()))[-1]
    return f"{reason.split(' Is the server running')[0].rstrip('.')}."
