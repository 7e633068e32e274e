"""The examples of the documentation are run, and say what they really print."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg import sql

from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase, LiveServer

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = DOCS / "tutorial" / "first-search.md"
SEARCH = DOCS / "how-to" / "search-from-sql.md"
MAINTAIN = DOCS / "how-to" / "maintain.md"
MONITOR = DOCS / "how-to" / "monitor.md"
EXPERIMENT = DOCS / "how-to" / "experiment.md"
RETRIEVE = DOCS / "how-to" / "retrieve.md"
TEXT_TO_SQL = DOCS / "how-to" / "text-to-sql.md"
PYTHON = DOCS / "reference" / "python.md"
ANALYST = "bi_reader"

_BLOCK = re.compile(r"^```(\w+)(?: error=(\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE_RULE = re.compile(r"[-+|\s]+")
_NUMBER = re.compile(r"-?\d+\.\d+")
# The embedder's two runtimes differ by about this much.
CLOSE = 0.02

pytestmark = pytest.mark.slow  # each command loads the model or starts Python anew


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the SQLSTATE it must fail with, and the output shown for it."""

    kind: str
    text: str
    sqlstate: str
    shown: str | None


def read_blocks(path: Path) -> list[Block]:
    found = _BLOCK.findall(path.read_text())
    following = [*found[1:], ("", "", "")]
    return [
        Block(kind, text, state or "00000", shown if next_kind == "text" else None)
        for (kind, state, text), (next_kind, _, shown) in zip(found, following, strict=True)
    ]


def words_of(output: str) -> list[str]:
    """The words of an output, without the lines and padding of tables."""
    lines = (line for line in output.splitlines() if not _TABLE_RULE.fullmatch(line))
    return [word for line in lines for word in line.replace("|", " ").split()]


def assert_same_output(printed: str, shown: str) -> None:
    """Compare word by word; numbers with a fraction may differ a little."""
    left, right = words_of(printed), words_of(shown)
    for a, b in zip(left, right, strict=False):
        if _NUMBER.fullmatch(a) and _NUMBER.fullmatch(b):
            assert float(a) == pytest.approx(float(b), abs=CLOSE), printed
        else:
            assert a == b, printed
    assert len(left) == len(right), printed


@dataclass(frozen=True)
class Terminal:
    """A shell in an empty directory whose settings name the test's database."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, given: str = "") -> str:
        done = subprocess.run(
            command,
            input=given,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_blocks(self, blocks: list[Block]) -> None:
        """Run the `console` blocks, and compare what they print with what is shown."""
        for block in blocks:
            if block.kind == "console":
                printed = self.run("sh", "-ec", block.text)
                if block.shown is not None:
                    assert_same_output(printed, block.shown)

    def run_session(self, blocks: list[Block], *who: str) -> None:
        """Run the `sql` and `psql` blocks in one psql session, in which variables stay set."""
        asked = [block for block in blocks if block.kind in ("sql", "psql")]
        script = "\\pset pager off\n"
        for block in asked:
            stop = "on" if block.sqlstate == "00000" else "off"
            script += f"\\set ON_ERROR_STOP {stop}\n{block.text}\\echo @@@ :SQLSTATE\n"
        output = self.run("contextforge", "psql", *who, "--", "-X", "-q", given=script)
        answers = re.findall(r"(.*?)^@@@ (\w+)\n", output, re.MULTILINE | re.DOTALL)
        assert len(answers) == len(asked)
        for block, (printed, sqlstate) in zip(asked, answers, strict=True):
            assert sqlstate == block.sqlstate, block.text
            if block.shown is not None:
                assert_same_output(printed, block.shown)


@pytest.fixture
def live(make_database: MakeDatabase) -> LiveDatabase:
    """A database of the default dimension."""
    return make_database(embedding_dim=1024)


@pytest.fixture
def terminal(live: LiveDatabase, tmp_path: Path) -> Terminal:
    programs = [Path(sys.executable).parent, live.server.bin_dir]
    environment = os.environ | {
        "DATABASE_URL": live.service_url,
        "ADMIN_DATABASE_URL": live.admin_url,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
    }
    return Terminal(tmp_path, environment)


@pytest.fixture
def no_analyst_left(live: LiveDatabase, server: LiveServer) -> Iterator[None]:
    """Drop the role the examples create: roles are the whole server's."""
    yield
    with live.admin.begin() as connection:
        connection.exec_driver_sql(f"drop owned by {ANALYST}")
    server.execute(sql.SQL("drop role {}").format(sql.Identifier(ANALYST)))


def find_program(blocks: list[Block]) -> str:
    [program] = [block.text for block in blocks if block.kind == "python"]
    return program


def follow_the_tutorial(terminal: Terminal) -> list[Block]:
    blocks = read_blocks(TUTORIAL)
    (terminal.folder / "ingest.py").write_text(find_program(blocks))
    terminal.run_blocks(blocks)
    return blocks


def test_the_tutorial_runs_as_it_is_written(terminal: Terminal):
    blocks = follow_the_tutorial(terminal)
    terminal.run_session(blocks, "--tenant", "acme")
    assert set(terminal.run("python", "ingest.py").split()[::2]) == {"unchanged"}


@pytest.mark.usefixtures("no_analyst_left")
def test_the_sql_guide_runs_as_it_is_written(terminal: Terminal):
    follow_the_tutorial(terminal)
    blocks = read_blocks(SEARCH)
    assert sum(block.sqlstate == "42501" for block in blocks) == 2
    terminal.run_blocks(blocks)
    terminal.run_session(blocks, "--as", ANALYST)


def test_the_retrieval_examples_run(terminal: Terminal):
    follow_the_tutorial(terminal)
    blocks = read_blocks(RETRIEVE)
    terminal.run_blocks(blocks)
    typed, agent = (block.text for block in blocks if block.kind == "python")
    assert "search" in terminal.run("python", "-c", typed)
    assert len(terminal.run("python", "-c", agent).splitlines()) == 3


def test_the_text_to_sql_guide_leads_from_a_database_to_the_prompt_it_shows(terminal: Terminal):
    blocks = read_blocks(TEXT_TO_SQL)
    [program] = [block for block in blocks if block.kind == "python"]
    place = blocks.index(program)
    terminal.run_blocks(blocks[:place])
    assert len(program.text.splitlines()) <= 10
    assert_same_output(terminal.run("python", "-c", program.text), program.shown or "")
    terminal.run_blocks(blocks[place:])
    report = json.loads(
        terminal.run(
            "sh", "-c", "contextforge check-examples --tenant acme --dataset shop --json || true"
        )
    )
    assert [each["question"] for each in report["broken"]] == ["What was sold in May?"]


def test_the_experiment_guide_runs_as_it_is_written(terminal: Terminal):
    follow_the_tutorial(terminal)
    blocks = read_blocks(EXPERIMENT)
    assert terminal.run("python", "-c", find_program(blocks)).split() == ["1", "helpful"]
    terminal.run_blocks(blocks)
    terminal.run_session(blocks, "--tenant", "acme")


def test_the_python_and_maintenance_examples_run(terminal: Terminal):
    follow_the_tutorial(terminal)
    printed = terminal.run("python", "-c", find_program(read_blocks(PYTHON)))
    assert len(printed.splitlines()) == 2  # the nodes whose area is shipping
    terminal.run_blocks(read_blocks(MAINTAIN))
    terminal.run_blocks(read_blocks(MONITOR))
