"""The worker in this process: what it makes of jobs, of errors, of signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import pytest

from service.cli.worker import list_kinds
from service.db.engine import owner_transaction, tenant_transaction
from service.db.jobs import report_job_progress
from service.db.nodes import upsert_links
from service.db.queue import QueueWorker
from service.errors import DatabaseUnavailable, InvalidInput
from service.ingestion import job_runner
from service.ingestion.job_runner import JobRunner, Kind, Work
from service.ingestion.jobs import (
    IngestOptions,
    cancel_job,
    enqueue_documents,
    enqueue_examples,
    enqueue_job,
    enqueue_merge,
    enqueue_paths,
    enqueue_reembed,
    enqueue_schema,
    get_job,
    watch_job,
)
from service.types import InlineDocument, Job, Json, LinkDraft
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

NOTE = InlineDocument("note.md", b"# Note\n\nThe kettle whistles at noon.\n")
ROWS = InlineDocument("rows.jsonl", b'{"_id": "r1", "text": "A lark sings."}\nnot json\n')
SCHEMA = InlineDocument(
    "shop.json",
    b'{"name": "shop", "tables": [{"name": "orders", "columns":'
    b' [{"name": "id", "type": "integer"}]}]}',
)
EXAMPLES = InlineDocument(
    "q.csv", b"question,sql\nHow many?,select count(*) from orders\n,select 1\n"
)


class RunWorker(Protocol):
    def __call__(self, *, concurrency: int = 1, once: bool = True, **kinds: Kind) -> None: ...


@pytest.fixture
def acme(make_tenant: MakeTenant) -> str:
    return make_tenant("acme")


@pytest.fixture
def globex(make_tenant: MakeTenant) -> str:
    return make_tenant("globex")


@pytest.fixture
def run_worker(database: LiveDatabase) -> RunWorker:
    """run_worker(name=kind, ...): a worker that knows these kinds too, until the queue is empty."""

    def load(model: str | None = None) -> TinyEmbedder:
        return TinyEmbedder(model or "tiny")

    def run(*, concurrency: int = 1, once: bool = True, **kinds: Kind) -> None:
        runner = JobRunner(database.engine, {**list_kinds(), **kinds}, load)
        worker = QueueWorker(
            database.engine, database.service_url, runner.run, concurrency=concurrency
        )
        worker.run(once=once)

    return run


def look(database: LiveDatabase, job: Job) -> Job:
    return get_job(database.engine, [job.tenant_id], job_id=job.job_id)


def result_of(job: Job) -> dict[str, Any]:
    assert (job.state, job.error) == ("succeeded", None)
    return cast("dict[str, Any]", job.result)


def list_nodes(database: LiveDatabase, tenant: str) -> list[str]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        rows = connection.exec_driver_sql(
            "select external_id from knowledge_nodes where tenant_id = %s and parent_id is null"
            " order by external_id",
            (tenant,),
        )
        return list(rows.scalars())


def count_rows(database: LiveDatabase, table: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(connection.exec_driver_sql(f"select count(*) from {table}").scalar_one())


def run_now(database: LiveDatabase) -> None:
    """Let the time come for which jobs are scheduled."""
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge_queue.procrastinate_jobs set scheduled_at = now()"
        )


def tidy(work: Work) -> Mapping[str, Json]:
    return {"tidied": work.tenant_id, **work.arguments}


def wait_for_stop(work: Work) -> Mapping[str, Json]:
    """Work that only ends when it is asked to."""
    for done in range(2000):
        work.report(done, None)
        time.sleep(0.01)
    raise AssertionError("nobody asked for the stop")


# --- what the kinds do --------------------------------------------------------------------------


def test_documents_that_were_handed_over_are_stored_and_removed_from_the_job(
    database: LiveDatabase, acme: str, globex: str, run_worker: RunWorker
):
    job = enqueue_documents(database.engine, acme, documents=[NOTE, ROWS])
    run_worker()

    done = look(database, job)
    result = result_of(done)
    assert (result["added"], done.progress_done) == (2, 2)
    assert [each["source"] for each in result["rejected"]] == ["rows.jsonl, line 2"]
    assert list_nodes(database, acme) == ["note.md", "r1"]
    assert list_nodes(database, globex) == []
    assert count_rows(database, "contextforge.job_documents") == 0
    assert count_rows(database, "contextforge_queue.procrastinate_jobs") == 0


def test_queued_paths_are_read_by_the_worker_and_pruned(
    database: LiveDatabase, acme: str, run_worker: RunWorker, tmp_path, monkeypatch
):
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# {name}\n\nText of {name}, which is short.\n")
    monkeypatch.chdir(tmp_path)
    options = IngestOptions(prune=True)
    first = enqueue_paths(database.engine, acme, paths=["handbook"], options=options)
    monkeypatch.chdir("/")
    run_worker()
    (folder / "a.md").unlink()
    second = enqueue_paths(database.engine, acme, paths=[str(folder)], options=options)
    run_worker()

    assert look(database, first).progress_total == 2
    result = result_of(look(database, second))
    assert (result["unchanged"], result["removed"]) == (1, 1)
    assert list_nodes(database, acme) == ["b.md"]


def test_a_schema_and_its_examples_can_be_queued(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    options = IngestOptions(dataset_name="shop")
    enqueue_schema(database.engine, acme, document=SCHEMA, options=options)
    examples = enqueue_examples(
        database.engine, acme, document=EXAMPLES, example_format="csv", options=options
    )
    run_worker()

    result = result_of(look(database, examples))
    assert (result["added"], len(result["rejected"])) == (1, 1)
    assert len(list_nodes(database, acme)) == 2


def test_a_model_can_be_changed_and_segments_folded_by_the_worker(
    database: LiveDatabase,
    acme: str,
    globex: str,
    run_worker: RunWorker,
    upsert: Upsert,
    make_node: MakeNode,
):
    for number in range(3):
        upsert(acme, [make_node(str(number), f"boat {number}")])
        upsert(globex, [make_node(str(number), f"boat {number}")])
    changed = enqueue_reembed(database.engine, acme, model="next")
    folded = enqueue_merge(database.engine, acme, everything=True)
    run_worker()

    result = result_of(look(database, changed))
    assert result["embedder_version"] == TinyEmbedder("next").version
    assert look(database, folded).result == {"tenant_id": acme, "segments_folded": 3}
    with tenant_transaction(database.engine, [globex]) as connection:
        segments = connection.exec_driver_sql("select count(*) from contextforge.segments")
        assert segments.scalar_one() == 3


def test_ranks_are_computed_by_the_worker(
    database: LiveDatabase,
    acme: str,
    globex: str,
    run_worker: RunWorker,
    upsert: Upsert,
    make_node: MakeNode,
):
    for tenant in (acme, globex):
        upsert(tenant, [make_node("a", "boat"), make_node("b", "oar")])
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_links(connection, tenant, links=[LinkDraft("a", "b")])
    arguments = {"force": True}
    job = enqueue_job(database.engine, acme, kind="refresh_ranks", arguments=arguments)
    run_worker()

    assert look(database, job).result == {"tenant_id": acme, "linked_nodes": 2}
    assert count_rows(database, "node_ranks") == 2


def test_more_kinds_can_be_given_to_a_worker(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="tidy", arguments={"deep": True})
    run_worker(tidy=tidy)

    assert look(database, job).result == {"tidied": acme, "deep": True}


# --- errors -------------------------------------------------------------------------------------


def fail_with(error: Exception) -> Kind:
    def fail(_: Work) -> Mapping[str, Json]:
        raise error

    return fail


def test_an_error_of_the_service_is_told_and_not_tried_again(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="bad")
    run_worker(bad=fail_with(InvalidInput("It is \0 upside down.", hint="Turn it.")))

    failed = look(database, job)
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.code == "invalid_input"
    assert failed.error.message == "It is \ufffd upside down."
    assert failed.error.hint == "Turn it."


def test_a_fault_is_logged_and_the_tenant_learns_nothing_of_its_inside(
    database: LiveDatabase, acme: str, run_worker: RunWorker, caplog: pytest.LogCaptureFixture
):
    job = enqueue_job(database.engine, acme, kind="bad")
    after = enqueue_job(database.engine, acme, kind="tidy")
    run_worker(bad=fail_with(KeyError("/srv/secret")), tidy=tidy)

    failed = look(database, job)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == ("failed", "internal")
    assert "secret" not in failed.error.message
    assert "/srv/secret" in caplog.text
    assert look(database, after).state == "succeeded"


def test_a_kind_the_worker_does_not_know_fails(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="juggle")
    run_worker()

    failed = look(database, job)
    assert failed.error is not None
    assert 'the kind "juggle"' in failed.error.message


def test_an_outage_of_the_database_is_waited_for_and_the_work_tried_again(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="shaky")
    run_worker(shaky=fail_with(DatabaseUnavailable("Gone.")))
    waiting = look(database, job)
    run_worker(shaky=tidy)

    assert (waiting.state, waiting.error) == ("queued", None)
    assert look(database, job).state == "queued", "its time has not come"
    run_now(database)
    run_worker(shaky=tidy)
    assert look(database, job).state == "succeeded"


def test_an_outage_that_does_not_end_is_an_error_at_last(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="shaky")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("update contextforge_queue.procrastinate_jobs set attempts = 9")
    run_worker(shaky=fail_with(DatabaseUnavailable("Gone.")))

    failed = look(database, job)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == ("failed", "database_unavailable")


def test_a_job_whose_tenant_was_deleted_is_passed_over(
    database: LiveDatabase, acme: str, globex: str, run_worker: RunWorker
):
    enqueue_documents(database.engine, acme, documents=[NOTE])
    after = enqueue_job(database.engine, globex, kind="tidy")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("select delete_tenant('acme')")
    run_worker(tidy=tidy)

    assert look(database, after).state == "succeeded"
    assert count_rows(database, "contextforge_queue.procrastinate_jobs") == 0


# --- order, progress, stopping ------------------------------------------------------------------


def test_jobs_of_one_tenant_and_key_run_in_order_while_other_tenants_jobs_run_beside_them(
    database: LiveDatabase, acme: str, globex: str, run_worker: RunWorker
):
    events: list[tuple[str, Json]] = []
    both_tenants = threading.Barrier(2)

    def meet(work: Work) -> Mapping[str, Json]:
        if work.arguments["number"] == 1:
            both_tenants.wait(timeout=20)
        events.append((work.tenant_id, work.arguments["number"]))
        return {}

    for number in (1, 2, 3):
        for tenant in (acme, globex):
            arguments = {"number": number}
            enqueue_job(database.engine, tenant, kind="meet", arguments=arguments)
    run_worker(concurrency=4, meet=meet)

    for tenant in (acme, globex):
        assert [number for whose, number in events if whose == tenant] == [1, 2, 3]


def test_progress_is_written_once_a_second_at_most_and_at_the_end(
    database: LiveDatabase, acme: str, run_worker: RunWorker, monkeypatch: pytest.MonkeyPatch
):
    written: list[int] = []

    def remember(connection, job, *, done: int, total: int | None) -> None:
        written.append(done)
        report_job_progress(connection, job, done=done, total=total)

    def count(work: Work) -> Mapping[str, Json]:
        started = time.monotonic()
        for done in range(1, 251):
            work.report(done, 250)
            time.sleep(0.01)
        return {"seconds": time.monotonic() - started}

    monkeypatch.setattr(job_runner, "report_job_progress", remember)
    job = enqueue_job(database.engine, acme, kind="count")
    run_worker(count=count)

    done = look(database, job)
    assert 2 <= len(written) <= result_of(done)["seconds"] + 1
    assert (written[-1], done.progress_done, done.progress_total) == (250, 250, 250)


def when_running(database: LiveDatabase, job: Job, act: Callable[[], object]) -> threading.Thread:
    """Do something from another thread as soon as the job runs."""

    def wait() -> None:
        for state in watch_job(database.engine, [job.tenant_id], job_id=job.job_id, every=0.05):
            if state.state == "running":
                act()
                return

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_running_job_that_is_cancelled_stops_and_the_next_one_runs(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    job = enqueue_job(database.engine, acme, kind="long")
    after = enqueue_job(database.engine, acme, kind="tidy")
    thread = when_running(
        database, job, lambda: cancel_job(database.engine, acme, job_id=job.job_id)
    )
    run_worker(long=wait_for_stop, tidy=tidy)
    thread.join()

    assert look(database, job).state == "cancelled"
    assert look(database, after).state == "succeeded"


def test_a_signal_lets_a_short_job_finish_and_takes_no_new_one(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    def short(work: Work) -> Mapping[str, Json]:
        time.sleep(1)
        work.report(1, 1)
        return {}

    job = enqueue_job(database.engine, acme, kind="short")
    after = enqueue_job(database.engine, acme, kind="short")
    handler = signal.getsignal(signal.SIGTERM)
    thread = when_running(database, job, lambda: os.kill(os.getpid(), signal.SIGTERM))
    run_worker(once=False, short=short)
    thread.join()

    assert look(database, job).state == "succeeded"
    assert look(database, after).state == "queued"
    assert signal.getsignal(signal.SIGTERM) == handler


def test_a_second_signal_sends_a_long_job_back_to_the_queue(
    database: LiveDatabase, acme: str, run_worker: RunWorker
):
    def signal_twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)

    job = enqueue_job(database.engine, acme, kind="long")
    thread = when_running(database, job, signal_twice)
    run_worker(once=False, long=wait_for_stop)
    thread.join()

    assert look(database, job).state == "queued"
    run_worker(long=tidy)
    assert look(database, job).state == "succeeded"
