"""Migrations: roles, revisions and functions in one transaction, safe when two start at once."""

from __future__ import annotations

import io
from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import make_url

from service.db.engine import OWNER, plain_transaction
from service.db.resources import MIGRATIONS, function_files
from service.errors import DatabaseUnsuitable, SettingsError

LEAST_SERVER = 160000
LEAST_VECTOR = (0, 8)
SCHEMA = "contextforge"
QUEUE_SCHEMA = "contextforge_queue"
_LOCK = 0x636F6E746578  # any constant of our own: migrations of one database queue on it


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration did."""

    before: str | None
    after: str | None
    functions: int


def migrate(
    engine: Engine,
    *,
    embedding_dim: int,
    revision: str = "head",
    lock_timeout: str = "30s",
) -> Migration:
    """Bring the database to the revision; running it again changes nothing."""
    with plain_transaction(engine) as connection:
        connection.exec_driver_sql(f"set local lock_timeout = '{lock_timeout}'")
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({_LOCK})")
        check_server(connection)
        _prepare(connection)
        _refuse_other_dimension(connection, embedding_dim)
        connection.exec_driver_sql(f"set local role {OWNER}")
        before = current_revision(connection)
        command.upgrade(_config(embedding_dim, connection), revision)
        functions = _apply_functions(connection)
        return Migration(before, current_revision(connection), functions)


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database back to a revision; functions go, roles stay."""
    with plain_transaction(engine) as connection:
        connection.exec_driver_sql(f"set local role {OWNER}")
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({_LOCK})")
        _drop_functions(connection)
        command.downgrade(_config(stored_dimension(connection) or 1, connection), revision)


def print_migration(embedding_dim: int) -> str:
    """Return the SQL of a whole migration, for reading or for running by hand in psql."""
    output = io.StringIO()
    config = _config(embedding_dim)
    config.output_buffer = output
    output.write("begin;\ncreate extension if not exists vector;\n")
    output.write((MIGRATIONS / "roles.sql").read_text())
    output.write(f"\nset local role {OWNER};\n")
    revisions = io.StringIO()
    config.output_buffer = revisions
    command.upgrade(config, "head", sql=True)
    # Alembic brings a transaction of its own; ours is already open.
    output.write(revisions.getvalue().replace("BEGIN;\n", "").replace("COMMIT;\n", ""))
    output.write("set local check_function_bodies = off;\n")
    for path in function_files():
        output.write(f"\n{path.read_text()}")
    output.write("\ncommit;\n")
    return output.getvalue()


def head_revision() -> str | None:
    """Return the newest revision this code knows."""
    return ScriptDirectory.from_config(_config(1)).get_current_head()


def current_revision(connection: Connection) -> str | None:
    """Return the revision the database is at, None before the first migration."""
    options = {"version_table": "schema_version", "version_table_schema": SCHEMA}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def stored_dimension(connection: Connection) -> int | None:
    """Return the EMBEDDING_DIM this database was migrated with, None before that."""
    known = connection.exec_driver_sql(f"select to_regclass('{SCHEMA}.installation')").scalar()
    if known is None:
        return None
    value = connection.exec_driver_sql(f"select embedding_dim from {SCHEMA}.installation").scalar()
    return None if value is None else int(value)


def check_server(connection: Connection) -> None:
    """Refuse a server that is too old or has no pgvector, in one sentence saying what to do."""
    number, name = connection.exec_driver_sql(
        "select current_setting('server_version_num')::int, current_setting('server_version')"
    ).one()
    if number < LEAST_SERVER:
        raise DatabaseUnsuitable(
            f"This is PostgreSQL {name}; ContextForge needs 16 or later.",
            hint="Upgrade the server, or unset DATABASE_URL to use the embedded one.",
        )
    version, schema = connection.exec_driver_sql("""
        select coalesce(e.extversion, a.default_version), n.nspname
        from pg_available_extensions as a
        left join pg_extension as e on e.extname = a.name
        left join pg_namespace as n on n.oid = e.extnamespace
        where a.name = 'vector'
    """).one_or_none() or (None, None)
    if version is None:
        raise DatabaseUnsuitable(
            "This PostgreSQL server has no pgvector.",
            hint="Install the pgvector package (0.8 or later) on the server, then try again.",
        )
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_VECTOR:
        raise DatabaseUnsuitable(
            f"pgvector here is {version}; ContextForge needs 0.8 or later.",
            hint="Install a newer pgvector and run: alter extension vector update",
        )
    if schema not in (None, "public"):
        raise DatabaseUnsuitable(
            f'pgvector stands in schema "{schema}"; ContextForge looks for it in public.',
            hint="Run: alter extension vector set schema public",
        )


def ensure_service_login(engine: Engine, service_url: str) -> None:
    """Create the login of DATABASE_URL if it is missing, and give it the roles of the service."""
    url = make_url(service_url)
    if not url.username:
        return
    with plain_transaction(engine) as connection:
        exists = connection.exec_driver_sql(
            "select true from pg_roles where rolname = %s", (url.username,)
        ).scalar()
        user = connection.exec_driver_sql("select quote_ident(%s)", (url.username,)).scalar()
        if not exists:
            secret = _encrypted(connection, url.username, url.password)
            connection.exec_driver_sql(f"create role {user} login {secret}")
        safe = connection.exec_driver_sql(
            "select not (rolsuper or rolbypassrls or pg_has_role(oid, %s, 'member'))"
            " from pg_roles where rolname = %s",
            (OWNER, url.username),
        ).scalar()
        if safe:
            connection.exec_driver_sql(f"grant contextforge_api to {user}")
            # Taken on by the worker alone: other connections are not to see the queue.
            connection.exec_driver_sql(
                f"grant contextforge_worker to {user} with inherit false, set true"
            )


def _encrypted(connection: Connection, user: str, password: str | None) -> str:
    """Return the password clause as a SCRAM verifier, so that no log ever holds the password."""
    if not password:
        return ""
    driver = connection.connection.driver_connection
    assert driver is not None
    verifier = driver.pgconn.encrypt_password(
        password.encode(), user.encode(), b"scram-sha-256"
    ).decode()
    return f"password '{verifier}'"


def _prepare(connection: Connection) -> None:
    present = connection.exec_driver_sql(
        "select true from pg_extension where extname = 'vector'"
    ).scalar()
    if not present:
        connection.exec_driver_sql("create extension vector schema public")
    _run_script(connection, (MIGRATIONS / "roles.sql").read_text())


def _refuse_other_dimension(connection: Connection, embedding_dim: int) -> None:
    stored = stored_dimension(connection)
    if stored not in (None, embedding_dim):
        raise SettingsError(
            f"EMBEDDING_DIM is {embedding_dim}, but this database was made with {stored}.",
            hint=f"Set EMBEDDING_DIM={stored}, or migrate an empty database and ingest again.",
        )


def _apply_functions(connection: Connection) -> int:
    files = function_files()
    # Functions may name one another in any order.
    connection.exec_driver_sql("set local check_function_bodies = off")
    for path in files:
        _run_script(connection, path.read_text())
    return len(files)


def _drop_functions(connection: Connection) -> None:
    names = connection.exec_driver_sql(
        "select p.oid::regprocedure::text from pg_proc as p"
        f" where pg_get_userbyid(p.proowner) = '{OWNER}'"
        # Those of the queue belong to the revision that made them.
        f" and p.pronamespace::regnamespace::text <> '{QUEUE_SCHEMA}'"
    ).scalars()
    for name in names.all():
        connection.exec_driver_sql(f"drop function if exists {name} cascade")


def _run_script(connection: Connection, script: str) -> None:
    # Without parameters the driver sends the text as it is, percent signs included.
    connection.execution_options(no_parameters=True).exec_driver_sql(script)


def _config(embedding_dim: int, connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["embedding_dim"] = embedding_dim
    config.attributes["connection"] = connection
    return config
