"""Fixtures for the tests of the command line."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.cli.app import run_command_line
from tests.command_line import Command, Result
from tests.live_database import SMALL_DIM, LiveDatabase


@pytest.fixture
def bare(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """bare(*arguments): run one command in an empty directory without settings."""
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "ADMIN_DATABASE_URL", "CONTEXTFORGE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments: str) -> Result:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            run_command_line(arguments)
        code = caught.value.code
        return Result(code if isinstance(code, int) else 0, *capfd.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def command_on(bare: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Command]:
    """command_on(database, embedding_dim=...): run commands on that database from now on."""

    def choose(database: LiveDatabase, *, embedding_dim: int = SMALL_DIM) -> Command:
        monkeypatch.setenv("DATABASE_URL", database.service_url)
        monkeypatch.setenv("ADMIN_DATABASE_URL", database.admin_url)
        monkeypatch.setenv("EMBEDDING_DIM", str(embedding_dim))
        monkeypatch.setenv("PATH", f"{database.server.bin_dir}:{os.environ['PATH']}")
        return bare

    return choose


@pytest.fixture
def command(command_on: Callable[..., Command], database: LiveDatabase) -> Command:
    """command(*arguments): run one command on this test's database."""
    return command_on(database)
