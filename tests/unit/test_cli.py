"""The command line: what people and programs read, exit codes, and errors in one line."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest
import typer

from service.cli.keys import parse_expiry
from service.db.engine import plain_transaction
from service.db.registry import authenticate_key
from tests.command_line import Command
from tests.conftest import MakeLogin, MakeTenant
from tests.live_database import LiveDatabase

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from service.cli import main; main()"


# --- starting -------------------------------------------------------------------------------


def test_help_loads_neither_the_database_nor_a_model_nor_the_web():
    heavy = "{'sqlalchemy', 'psycopg', 'numpy', 'torch', 'fastapi', 'uvicorn', 'alembic'}"
    script = f"import sys, service.cli.app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *(("--help",), ("run", "--help"), ("serve", "--help"), ("migrate", "--help")),
        *(("doctor", "--help"), ("settings", "--help"), ("embed", "--help"), ("psql", "--help")),
        *(("tenants", "--help"), ("keys", "create", "--help"), ("analysts", "grant", "--help")),
    ],
)
def test_every_command_explains_itself(bare: Command, arguments: tuple[str, ...]):
    result = bare(*arguments)
    assert result.code == 0
    assert "Usage" in result.out


def test_the_reference_names_every_command(bare: Command):
    listed = set(re.findall(r"^│ ([a-z]+) ", bare("--help").out, re.MULTILINE))
    reference = (ROOT / "docs/reference/cli.md").read_text()
    assert listed >= {"run", "serve", "migrate", "doctor", "psql", "tenants", "keys", "analysts"}
    for name in listed:
        assert f"contextforge {name}" in reference


# --- errors ---------------------------------------------------------------------------------


def test_a_misspelt_setting_is_one_line_and_code_two(
    bare: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EMBEDING_DIM", "8")
    result = bare("settings")
    assert result.code == 2
    assert re.fullmatch(r"error: EMBEDING_DIM .*EMBEDDING_DIM.*\n", result.err)


def test_an_unreachable_database_is_one_line_and_code_one(
    bare: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:sesame@127.0.0.1:1/db")
    result = bare("serve")
    assert result.code == 1
    assert re.fullmatch(r"error: The database of DATABASE_URL cannot be used: .*\n", result.err)
    assert "sesame" not in result.err


def test_administration_without_its_url_is_code_two(bare: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://me@127.0.0.1:1/db")
    for arguments in (("tenants", "list"), ("doctor",), ("migrate",), ("psql", "--admin")):
        result = bare(*arguments)
        assert result.code == 2
        assert "ADMIN_DATABASE_URL is not" in result.err


def test_an_unsafe_login_is_refused_before_anything_is_served(
    command: Command, database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DATABASE_URL", database.admin_url)
    result = command("serve")
    assert result.code == 1
    assert re.fullmatch(r"error: Login \"postgres\" is a superuser.*\n", result.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("keys", "create", "web"),
        ("keys", "create", "web", "--tenant", "acme", "--expires", "soon"),
        ("psql",),
        ("psql", "--admin", "--as", "bi"),
        ("serve", "--port", "0"),
    ],
)
def test_wrong_usage_is_code_two(bare: Command, arguments: tuple[str, ...]):
    assert bare(*arguments).code == 2


# --- settings and schema --------------------------------------------------------------------


def test_settings_are_listed_with_secrets_masked(bare: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:sesame@db/forge")
    shown = {row["name"]: row for row in bare("settings", "--json").json}
    assert shown["DATABASE_URL"]["value"] == "postgresql://me:***@db/forge"
    assert shown["EMBEDDING_DIM"]["source"] == "default"
    assert "CONTEXT_TOKEN_BUDGET" in bare("settings").out


def test_migrate_says_where_it_went_and_again_that_it_is_there(
    command: Command, database: LiveDatabase
):
    assert re.match(r"Already at migration \d+; \d+ functions", command("migrate").out)


def test_migrate_sql_prints_without_a_database(bare: Command):
    result = bare("migrate", "--sql")
    assert result.code == 0
    assert "create table public.knowledge_nodes" in result.out
    assert result.out.startswith("begin;")
    assert result.out.endswith("commit;\n")


# --- tenants, keys, analysts ----------------------------------------------------------------


def test_tenants_are_created_listed_and_deleted(command: Command):
    assert command("tenants", "create", "acme", "--name", "Acme Corp").code == 0
    assert command("tenants", "create", "globex").code == 0
    assert "already" in command("tenants", "create", "acme").out
    assert [row["tenant_id"] for row in command("tenants", "list", "--json").json] == [
        "acme",
        "globex",
    ]
    assert "Acme Corp" in command("tenants", "list").out
    assert command("tenants", "delete", "acme", "--yes").code == 0
    assert [row["tenant_id"] for row in command("tenants", "list", "--json").json] == ["globex"]
    gone = command("tenants", "delete", "acme", "--yes")
    assert (gone.code, gone.err) == (1, 'error: There is no tenant "acme".\n')


def test_a_deletion_nobody_confirms_does_not_happen(
    command: Command, make_tenant: MakeTenant, monkeypatch: pytest.MonkeyPatch
):
    make_tenant("acme")
    for answer in ("n\n", ""):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert command("tenants", "delete", "acme").code == 1
    assert len(command("tenants", "list", "--json").json) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert command("tenants", "delete", "acme").code == 0


def test_a_key_is_printed_alone_once_and_opens_its_tenant(
    command: Command, database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("acme")
    make_tenant("globex")
    options = ("--scope", "search", "--scope", "ingest", "--group", "staff", "--expires", "30d")
    created = command("keys", "create", "web", "--tenant", "acme", *options)
    key = created.out.strip()
    with plain_transaction(database.engine) as connection:
        caller = authenticate_key(connection, key)
    assert caller is not None
    assert (caller.tenant_ids, caller.scopes) == (("acme",), ("search", "ingest"))
    listed = command("keys", "list", "--json")
    assert key not in listed.out
    (row,) = listed.json
    assert row["acl_groups"] == ["staff"]
    left = datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=29) < left < timedelta(days=31)

    assert command("keys", "revoke", row["key_id"], "--yes").code == 0
    with plain_transaction(database.engine) as connection:
        assert authenticate_key(connection, key) is None
    assert command("keys", "revoke", "nonsense", "--yes").code == 1


def test_a_key_in_json_has_everything_in_one_object(command: Command, make_tenant: MakeTenant):
    make_tenant("acme")
    made = command("keys", "create", "web", "--tenant", "acme", "--json").json
    assert made["key"].startswith(f"cf_{made['key_id']}_")
    assert made["scopes"] == ["search"]
    assert command("keys", "create", "web", "--tenant", "globex").code == 1


def test_analysts_are_granted_listed_and_revoked(
    command: Command, make_tenant: MakeTenant, make_login: MakeLogin
):
    make_tenant("acme")
    make_tenant("globex")
    role = make_login(member_of=())
    assert command("analysts", "grant", role, "acme").code == 0
    (row,) = command("analysts", "list", "--json").json
    assert (row["role_name"], row["tenant_id"]) == (role, "acme")
    assert command("analysts", "revoke", role, "globex", "--yes").code == 1
    assert command("analysts", "revoke", role, "acme", "--yes").code == 0
    assert command("analysts", "list", "--json").json == []
    missing = command("analysts", "grant", "no_such_role", "acme")
    assert missing.code == 1
    assert "create role no_such_role login" in missing.err


@pytest.mark.parametrize(("text", "days"), [("30d", 30), ("48h", 2), ("2w", 14), (" 1D ", 1)])
def test_an_expiry_may_be_a_time_span(text: str, days: int):
    left = parse_expiry(text) - datetime.now(UTC)
    assert abs(left - timedelta(days=days)) < timedelta(minutes=1)


def test_an_expiry_may_be_a_date_which_is_utc_unless_it_says_otherwise():
    assert parse_expiry("2031-05-01") == datetime(2031, 5, 1, tzinfo=UTC)
    assert parse_expiry("2031-05-01T02:00+02:00") == datetime(2031, 5, 1, tzinfo=UTC)
    for text in ("", "0d", "-3d", "d", "2031-13-01", "tomorrow"):
        with pytest.raises(typer.BadParameter):
            parse_expiry(text)


# --- doctor, psql, embed --------------------------------------------------------------------


def test_the_doctor_exits_with_one_when_a_check_fails(command: Command, database: LiveDatabase):
    well = command("doctor")
    assert well.code == 0
    assert re.search(r"^ok +statistics", well.out, re.MULTILINE)
    with database.admin.begin() as connection:
        connection.exec_driver_sql("alter table node_links no force row level security")
    result = command("doctor", "--json")
    assert result.code == 1
    failed = {check["name"] for check in result.json if check["status"] == "failed"}
    assert failed == {"row-level security", "service login"}


def test_psql_opens_as_the_service_with_one_tenant(command: Command, make_tenant: MakeTenant):
    make_tenant("acme")
    make_tenant("globex")
    statement = "select current_user, tenant_id from contextforge.tenant_profiles"
    result = command("psql", "--tenant", "acme", "--", "-XAtc", statement)
    assert (result.code, result.out) == (0, "contextforge_service|acme\n")
    refused = command("psql", "--tenant", "initech", "--", "-XAtc", statement)
    assert refused.code == 1
    assert 'tenant "initech" does not exist' in refused.err
    assert command("psql", "--tenant", "a b").code == 1


def test_psql_opens_as_an_analyst_and_as_the_administrator(
    command: Command, make_tenant: MakeTenant, make_login: MakeLogin
):
    make_tenant("acme")
    make_tenant("globex")
    login = make_login("the Analyst", granted=["acme"])
    statement = "select current_user, tenant_id from contextforge.tenant_profiles order by 2"
    result = command("psql", "--as", login, "--", "-XAtc", statement)
    assert (result.code, result.out) == (0, f"{login}|acme\n")
    result = command("psql", "--admin", "--", "-XAtc", statement)
    assert result.out == "postgres|acme\npostgres|globex\n"


def test_the_exit_code_of_psql_is_handed_on(command: Command):
    result = command("psql", "--admin", "--", "-XAtc", "select 1/0")
    assert result.code == 1
    assert "division by zero" in result.err


def test_embed_prints_what_pgvector_reads_back_to_the_same_values(
    command: Command, database: LiveDatabase
):
    literal = command("embed", "where is my parcel").out.strip()
    with psycopg.connect(database.service_url) as connection:
        row = connection.execute("select vector_dims(%s::vector)", (literal,)).fetchone()
    assert row == (384,)
    values = command("embed", "where is my parcel", "--json").json["embedding"]
    read = np.array(literal.strip("[]").split(","), dtype=np.float32)
    assert np.array_equal(read, np.array(values, dtype=np.float32))
    assert np.linalg.norm(read) == pytest.approx(1, abs=1e-3)


# --- serving --------------------------------------------------------------------------------


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_run_serves_on_its_own_database_and_a_terminated_one_leaves_no_server():
    # Not tmp_path: pytest closes its directories to the user the server runs as under root.
    home = Path(tempfile.mkdtemp(prefix="cf-"))
    home.chmod(0o755)
    port = find_free_port()
    environment = {"PATH": os.environ["PATH"], "CONTEXTFORGE_DATA_DIR": str(home / "data")}
    try:
        with subprocess.Popen(
            [sys.executable, "-c", MAIN, "run", "--port", str(port)],
            cwd=home,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            seen = ""
            while "Serving on" not in seen:
                line = process.stderr.readline()
                assert line, seen
                seen += line
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                assert json.load(answer) == {"status": "ok"}
            process.terminate()
            _, rest = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGTERM, rest
        assert "Traceback" not in rest
        assert not (home / "data/pg18/data/postmaster.pid").exists()
    finally:
        shutil.rmtree(home, ignore_errors=True)
