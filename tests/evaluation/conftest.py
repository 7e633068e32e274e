"""A database of the model's dimension, and the command line on it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.cli.app import run_command_line
from service.db.engine import owner_transaction
from tests.command_line import Command, Result
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase

MODEL_DIM = 384


@pytest.fixture
def live(make_database: MakeDatabase) -> LiveDatabase:
    """A database of the model's dimension with two tenants."""
    database = make_database(embedding_dim=MODEL_DIM)
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme", "globex"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
    return database


@pytest.fixture
def command(
    live: LiveDatabase,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Command]:
    """command(*arguments): run one command on this test's database, in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", live.service_url)
    monkeypatch.setenv("ADMIN_DATABASE_URL", live.admin_url)
    monkeypatch.setenv("EMBEDDING_DIM", str(MODEL_DIM))
    numbers = (signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]

    def run(*arguments: str) -> Result:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            run_command_line(arguments)
        code = caught.value.code
        return Result(code if isinstance(code, int) else 0, *capfd.readouterr())

    yield run
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)
