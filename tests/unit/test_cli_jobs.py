"""--queue, contextforge jobs and contextforge worker, the worker in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from service.cli.app import run_command_line
from service.db.engine import owner_transaction
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase

MODEL_DIM = 384
WORKER = [sys.executable, "-c", "from service.cli import main; main()", "worker"]
ACME = ("--tenant", "acme")
GLOBEX = ("--tenant", "globex")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command(Protocol):
    def __call__(self, *arguments: str) -> Result: ...


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
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
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


@contextmanager
def running_worker(*options: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that is killed at the end if it is still there."""
    process = subprocess.Popen([*WORKER, *options], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def write_documents(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        text = f"# Boat {number}\n\nBoat {number} sails at dawn and is back before it is dark.\n"
        (folder / f"boat{number}.md").write_text(text)
    return folder


def list_articles(database: LiveDatabase) -> list[tuple[str, str]]:
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql(
            "select tenant_id, external_id from knowledge_nodes where node_type = 'article'"
            " order by 1, 2"
        )
        return [(tenant, name) for tenant, name in rows]


def show_state(command: Command, job_id: str) -> str:
    return str(command("jobs", "show", job_id, *ACME, "--json").json["state"])


def test_queued_work_is_done_by_a_worker_process_and_its_result_can_be_asked(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    write_documents(tmp_path / "boats", 3)
    queued = command("ingest", "boats", *ACME, "--queue")
    job_id = queued.out.strip()
    assert queued.code == 0
    assert f"contextforge jobs show {job_id} --tenant acme" in queued.err
    assert show_state(command, job_id) == "queued"

    with running_worker() as process:
        waited = command("jobs", "show", job_id, *ACME, "--wait", "--json")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert f"job {job_id} succeeded" in process.stderr.read()

    job = waited.json
    assert (waited.code, job["state"], job["kind"]) == (0, "succeeded", "ingest_paths")
    assert (job["result"]["added"], job["progress_done"], job["progress_total"]) == (3, 3, 3)
    assert len(list_articles(live)) == 3


def test_a_worker_told_once_works_the_queue_off_and_ends(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "How many boats?", "sql": "select count(*) from boats"}\n')
    schema = tmp_path / "fleet.json"
    schema.write_text(
        '{"name": "fleet", "tables": [{"name": "boats", "columns":'
        ' [{"name": "id", "type": "integer"}]}]}'
    )
    shop = (*ACME, "--dataset", "fleet", "--queue", "--json")
    for arguments in (("ingest-schema", str(schema)), ("ingest-examples", str(questions))):
        assert command(*arguments, *shop).json["state"] == "queued"
    schema.unlink()  # it went with the job

    done = subprocess.run([*WORKER, "--once"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    jobs = command("jobs", "list", *ACME, "--json").json
    assert [(job["kind"], job["state"]) for job in jobs] == [
        ("ingest_examples", "succeeded"),
        ("ingest_schema", "succeeded"),
    ]
    assert command("jobs", "list", *GLOBEX, "--json").json == []
    assert jobs[0]["job_id"] in command("jobs", "list", *ACME).out


@pytest.mark.slow
def test_the_work_of_a_killed_worker_is_done_by_the_next(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    write_documents(tmp_path / "boats", 400)
    job_id = command("ingest", "boats", *ACME, "--queue").out.strip()
    with running_worker() as process:
        deadline = time.monotonic() + 60
        while show_state(command, job_id) != "running":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
        process.wait()
    assert show_state(command, job_id) == "running", "killed too late to prove anything"
    with owner_transaction(live.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge_queue.procrastinate_workers"
            " set last_heartbeat = now() - interval '1 minute'"
        )

    done = subprocess.run([*WORKER, "--once"], capture_output=True, text=True, check=False)
    assert "1 jobs of lost workers are queued again" in done.stderr
    assert show_state(command, job_id) == "succeeded"
    assert len(list_articles(live)) == 400


def test_jobs_are_cancelled_and_tried_again_and_a_failure_is_told(command: Command, tmp_path: Path):
    job_id = command("ingest", "nowhere", *ACME, "--queue").out.strip()
    assert command("jobs", "cancel", job_id, *ACME).out == f"Job {job_id} is cancelled.\n"
    assert command("jobs", "retry", job_id, *ACME).out == f"Job {job_id} is queued again.\n"
    refused = command("jobs", "retry", job_id, *ACME)
    assert (refused.code, refused.out) == (1, "")
    assert "is queued" in refused.err

    subprocess.run([*WORKER, "--once"], capture_output=True, check=True)
    shown = command("jobs", "show", job_id, *ACME, "--wait")
    assert shown.code == 1
    assert "state     failed" in shown.out
    assert f"error     {tmp_path / 'nowhere'}: no such file or folder." in shown.out
    assert "had ended before: failed" in command("jobs", "cancel", job_id, *ACME).out


def test_another_tenants_job_is_not_there(command: Command):
    job_id = command("reembed", *ACME, "--model", "any", "--queue").out.strip()
    for action in ("show", "cancel", "retry"):
        answer = command("jobs", action, job_id, *GLOBEX)
        assert (answer.code, answer.out) == (1, "")
        assert "no job" in answer.err
    assert show_state(command, job_id) == "queued"


def test_what_cannot_be_queued_is_refused(command: Command):
    url = "postgresql://reader:sesame@db/shop"
    live_schema = command("ingest-schema", url, *ACME, "--dataset", "d", "--queue")
    assert (live_schema.code, live_schema.out) == (1, "")
    assert "sesame" not in live_schema.err
    assert command("ingest", "-", *ACME, "--queue").code == 1
    assert command("reembed", *ACME, "--abort", "--queue").code == 2


def test_maintain_forgets_old_jobs(command: Command, live: LiveDatabase):
    for tenant in (ACME, GLOBEX):
        job_id = command("ingest", "nowhere", *tenant, "--queue").out.strip()
        command("jobs", "cancel", job_id, *tenant)
    with owner_transaction(live.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.jobs set finished_at = now() - interval '15 days'"
            " where tenant_id = 'acme'"
        )
    pruned = [row["jobs_pruned"] for row in command("maintain", "--json").json]
    assert pruned == [1, 0]
    assert command("jobs", "list", *ACME, "--json").json == []
