"""contextforge psql."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from service.errors import InvalidInput

if TYPE_CHECKING:
    from service.db.database import Database


def psql(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- PSQL_OPTIONS]", help="Handed on to psql.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="As the service, for one tenant.")] = None,
    as_role: Annotated[
        str | None, typer.Option("--as", metavar="ROLE", help="As a role, such as an analyst.")
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="As the administrator.")] = False,
) -> None:
    """Open psql on the database, in the role and with the tenant that are asked for."""
    if [tenant is not None, as_role is not None, admin].count(True) != 1:
        raise typer.BadParameter("give one of --tenant TENANT, --as ROLE and --admin")
    from service.db.database import open_admin, open_database
    from service.settings import load_settings

    settings = load_settings()
    options = ""
    with open_database(settings) if tenant is not None else open_admin(settings) as database:
        if tenant is not None:
            _require_tenant(database, tenant)
            options = f"-c app.tenant_ids={tenant}"
        elif as_role is not None:
            options = f"-c role={_escape(as_role)}"
        status = _run_psql(database, options, arguments or [])
    raise typer.Exit(status)


def _require_tenant(database: Database, tenant: str) -> None:
    from service.db.engine import tenant_transaction

    with tenant_transaction(database.engine, [tenant]) as connection:
        connection.exec_driver_sql("select contextforge.require_tenants(%s)", ([tenant],))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")


def _run_psql(database: Database, options: str, arguments: list[str]) -> int:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    known = conninfo_to_dict(database.url)
    # In the environment and not among the arguments, which every user of the machine can read.
    password = known.pop("password", None)
    known["options"] = f"{known.get('options') or ''} {options}".strip()
    environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
    command = [_find_psql(database), "-d", make_conninfo("", **known), *arguments]
    database.engine.dispose()
    # Ctrl-C belongs to psql. A child rather than exec: the embedded server is held meanwhile.
    before = signal.signal(signal.SIGINT, _ignore)
    try:
        return subprocess.call(command, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)


def _ignore(number: int, _: FrameType | None) -> None:
    """Do nothing; unlike SIG_IGN this is not inherited by the child."""


def _find_psql(database: Database) -> str:
    if database.server is not None:
        return str(database.server.bin_dir / "psql")
    found = shutil.which("psql")
    if found is None:
        raise InvalidInput("There is no psql on the PATH.", hint="Install PostgreSQL's client.")
    return found
