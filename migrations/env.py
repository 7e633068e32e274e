"""Alembic runs here; `service.db.migrate` opens the connection, the roles and the transaction."""

from alembic import context

VERSION_TABLE = {"version_table": "schema_version", "version_table_schema": "contextforge"}


def run_online() -> None:
    context.configure(connection=context.config.attributes["connection"], **VERSION_TABLE)
    context.run_migrations()


def run_offline() -> None:
    context.configure(dialect_name="postgresql", literal_binds=True, **VERSION_TABLE)
    context.run_migrations()


if context.is_offline_mode():
    run_offline()
else:
    run_online()
