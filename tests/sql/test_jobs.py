"""Jobs as the database keeps them: states, and nobody learns of another tenant's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection

from service.db import jobs as stored
from service.db.engine import open_engine, owner_transaction, plain_transaction, tenant_transaction
from service.db.jobs import StartedJob, worker_transaction
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError
from service.ingestion.jobs import (
    IngestOptions,
    cancel_job,
    enqueue_documents,
    enqueue_job,
    enqueue_paths,
    enqueue_schema,
    get_job,
    list_jobs,
    retry_job,
)
from service.types import InlineDocument, JobError
from tests.conftest import MakeLogin, MakeTenant
from tests.live_database import LiveDatabase

NOTE = InlineDocument("note.md", b"# Note\n\nThe kettle whistles at noon.\n")
QUEUE_TABLES = ("procrastinate_jobs", "procrastinate_events", "procrastinate_workers")
TENANT_FUNCTIONS = (
    "public.enqueue_job('globex', 'tidy')",
    "public.find_jobs(array['acme', 'globex'])",
    "public.cancel_job('globex', %s)",
    "public.retry_job('globex', %s)",
    "contextforge.start_job('globex', %s)",
    "contextforge.read_job_document('globex', %s, 1)",
    "contextforge.report_job_progress('globex', %s, 1, 2)",
    "contextforge.return_job('globex', %s)",
    "contextforge.end_job('globex', %s, 'failed')",
)
WORKER_FUNCTIONS = ("contextforge.job_tenant(%s)", "contextforge.settle_jobs()")


@pytest.fixture
def acme(make_tenant: MakeTenant) -> str:
    return make_tenant("acme")


@pytest.fixture
def globex(make_tenant: MakeTenant) -> str:
    return make_tenant("globex")


def values_for(call: str, job_id: str) -> tuple[str, ...]:
    return (job_id,) if "%s" in call else ()


def ask_owner(database: LiveDatabase, statement: str) -> object:
    with owner_transaction(database.admin) as connection:
        return connection.exec_driver_sql(statement).scalar_one()


def count_documents(database: LiveDatabase) -> object:
    return ask_owner(database, "select count(*) from contextforge.job_documents")


def count_queue(database: LiveDatabase) -> object:
    return ask_owner(database, "select count(*) from contextforge_queue.procrastinate_jobs")


def fetch(database: LiveDatabase) -> tuple[str | None, int]:
    """Take the next job off the queue as a worker does; its id, and the worker's."""
    with worker_transaction(database.engine) as connection:
        worker = connection.exec_driver_sql(
            "select worker_id from contextforge_queue.procrastinate_register_worker_v1()"
        ).scalar_one()
        job_id = connection.exec_driver_sql(
            "select args->>'job_id'"
            " from contextforge_queue.procrastinate_fetch_job_v2(array['contextforge'], %s)",
            (worker,),
        ).scalar_one()
    return job_id, worker


def silence_worker(database: LiveDatabase, worker: int) -> None:
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge_queue.procrastinate_workers"
            " set last_heartbeat = now() - interval '1 minute' where id = %s",
            (worker,),
        )


def settle(database: LiveDatabase) -> int:
    with worker_transaction(database.engine) as connection:
        return stored.settle_jobs(connection, silence=timedelta(seconds=30))


def start(database: LiveDatabase, tenant: str) -> tuple[StartedJob, int]:
    """Fetch the next job and mark it as running."""
    job_id, worker = fetch(database)
    assert job_id is not None
    with tenant_transaction(database.engine, [tenant]) as connection:
        job = stored.start_job(connection, tenant, job_id=job_id)
    assert job is not None
    return job, worker


# --- isolation ----------------------------------------------------------------------------------


def test_a_tenant_sees_its_own_jobs_newest_first(database: LiveDatabase, acme: str, globex: str):
    first = enqueue_job(database.engine, acme, kind="tidy")
    enqueue_job(database.engine, globex, kind="tidy")
    second = enqueue_job(database.engine, acme, kind="tidy", arguments={"deep": True})

    assert [job.job_id for job in list_jobs(database.engine, [acme])] == [
        second.job_id,
        first.job_id,
    ]
    assert list_jobs(database.engine, [acme], max_rows=1) == [second]
    assert len(list_jobs(database.engine, [acme, globex])) == 3
    assert (second.state, second.kind, second.tenant_id) == ("queued", "tidy", acme)


@pytest.mark.parametrize(
    "act",
    [
        lambda database, job_id: get_job(database.engine, ["acme"], job_id=job_id),
        lambda database, job_id: cancel_job(database.engine, "acme", job_id=job_id),
        lambda database, job_id: retry_job(database.engine, "acme", job_id=job_id),
    ],
    ids=["get", "cancel", "retry"],
)
def test_the_id_of_another_tenants_job_is_answered_like_one_nobody_has(
    database: LiveDatabase, acme: str, globex: str, act: Callable[[LiveDatabase, str], object]
):
    foreign = enqueue_job(database.engine, globex, kind="tidy")
    unknown = str(uuid4())
    answers = []
    for job_id in (foreign.job_id, unknown):
        with pytest.raises(NotFound) as caught:
            act(database, job_id)
        answers.append(str(caught.value).replace(job_id, "ID"))

    assert answers[0] == answers[1]
    assert get_job(database.engine, [globex], job_id=foreign.job_id) == foreign


def test_an_id_that_is_no_id_is_not_found(database: LiveDatabase, acme: str):
    for job_id in ("", "7", "not an id", "' or 1=1"):
        with pytest.raises(NotFound, match="no job"):
            get_job(database.engine, [acme], job_id=job_id)


def test_every_function_refuses_a_tenant_the_setting_does_not_name(
    database: LiveDatabase, acme: str, globex: str
):
    job = enqueue_documents(database.engine, globex, documents=[NOTE])
    for call in TENANT_FUNCTIONS:
        for tenants in ([acme], []):
            with (
                pytest.raises(Forbidden, match=r'may not see tenant "(globex|acme)"'),
                tenant_transaction(database.engine, tenants) as connection,
            ):
                connection.exec_driver_sql(f"select * from {call}", values_for(call, job.job_id))
    assert list_jobs(database.engine, [globex]) == [job]


def test_no_analyst_may_call_a_function_of_jobs(
    database: LiveDatabase, acme: str, globex: str, make_login: MakeLogin
):
    url = database.url_for(make_login(granted=[acme, globex]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set app.tenant_ids = 'acme,globex'")
        for call in (*TENANT_FUNCTIONS, *WORKER_FUNCTIONS):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                connection.execute(f"select * from {call}", values_for(call, str(uuid4())))


def test_what_the_worker_asks_of_the_queue_no_other_connection_of_the_service_may_ask(
    database: LiveDatabase, acme: str
):
    job = enqueue_job(database.engine, acme, kind="tidy")
    for call in WORKER_FUNCTIONS:
        values = values_for(call, job.job_id)
        with (
            pytest.raises(Forbidden, match="permission denied"),
            tenant_transaction(database.engine, [acme]) as connection,
        ):
            connection.exec_driver_sql(f"select {call}", values)
        with worker_transaction(database.engine) as connection:
            connection.exec_driver_sql(f"select {call}", values)


def test_only_the_workers_role_reads_the_queue(
    database: LiveDatabase, acme: str, make_login: MakeLogin
):
    url = database.url_for(make_login(granted=[acme]))
    for table in QUEUE_TABLES:
        statement = f"select count(*) from contextforge_queue.{table}"
        for attempt in (statement, "set role contextforge_worker"):
            with (
                psycopg.connect(url) as analyst,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                analyst.execute(attempt)
        with pytest.raises(Forbidden), tenant_transaction(database.engine, [acme]) as connection:
            connection.exec_driver_sql(statement)
        with worker_transaction(database.engine) as connection:
            assert connection.exec_driver_sql(statement).scalar_one() == 0


def test_the_worker_sees_no_tenants_rows_and_no_jobs(database: LiveDatabase, acme: str):
    enqueue_job(database.engine, acme, kind="tidy")
    for table in ("contextforge.jobs", "contextforge.job_documents", "public.knowledge_nodes"):
        with pytest.raises(Forbidden), worker_transaction(database.engine) as connection:
            connection.exec_driver_sql(f"select count(*) from {table}")


def test_the_queue_knows_nothing_of_a_job_but_its_id(database: LiveDatabase, acme: str):
    job = enqueue_job(database.engine, acme, kind="tidy", arguments={"secret": "sesame"})

    row = ask_owner(database, "select q::text from contextforge_queue.procrastinate_jobs as q")
    assert job.job_id in str(row)
    assert "sesame" not in str(row)
    assert acme not in str(row)


def test_nobody_who_listens_hears_of_new_work(
    database: LiveDatabase, acme: str, make_login: MakeLogin
):
    url = database.url_for(make_login(granted=[acme]))
    with psycopg.connect(url, autocommit=True) as analyst:
        for channel in ("procrastinate_any_queue_v1", '"procrastinate_queue_v1#contextforge"'):
            analyst.execute(f"listen {channel}")
        job = enqueue_job(database.engine, acme, kind="tidy")
        start(database, acme)
        cancel_job(database.engine, acme, job_id=job.job_id)
        assert list(analyst.notifies(timeout=0.3)) == []


def test_no_function_of_the_queue_can_be_executed_by_everyone(database: LiveDatabase):
    open_ones = ask_owner(
        database,
        "select coalesce(array_agg(p.proname::text), '{}') from pg_proc as p"
        " where p.pronamespace = 'contextforge_queue'::regnamespace"
        " and (has_function_privilege('public', p.oid, 'execute') or p.proconfig is null)",
    )
    assert open_ones == []


def test_the_worker_needs_a_login_that_may_act_as_it(database: LiveDatabase, make_login: MakeLogin):
    from service.db.queue import QueueWorker

    login = make_login("service", member_of=("contextforge_api",))
    engine = open_engine(database.url_for(login))
    try:
        worker = QueueWorker(engine, database.url_for(login), lambda _: None)
        with pytest.raises(Forbidden, match="may not act as contextforge_worker") as caught:
            worker.run(once=True)
    finally:
        engine.dispose()
    assert f"grant contextforge_worker to {login}" in str(caught.value)


# --- states -------------------------------------------------------------------------------------


def test_a_job_goes_from_queued_to_running_to_its_end(database: LiveDatabase, acme: str):
    queued = enqueue_documents(database.engine, acme, documents=[NOTE])
    assert (queued.state, queued.started_at, queued.ended) == ("queued", None, False)

    started, _ = start(database, acme)
    assert (started.kind, started.document_names) == ("ingest_documents", ("note.md",))
    with tenant_transaction(database.engine, [acme]) as connection:
        assert stored.read_job_document(connection, started, place=1) == NOTE.content
        stored.report_job_progress(connection, started, done=3, total=9)
    running = get_job(database.engine, [acme], job_id=queued.job_id)
    assert (running.state, running.progress_done, running.progress_total) == ("running", 3, 9)

    with tenant_transaction(database.engine, [acme]) as connection:
        assert stored.end_job(connection, started, state="succeeded", result={"added": 1})
        assert not stored.end_job(connection, started, state="failed")
    ended = get_job(database.engine, [acme], job_id=queued.job_id)
    assert (ended.state, ended.result, ended.error) == ("succeeded", {"added": 1}, None)
    assert ended.finished_at is not None
    assert ended.started_at is not None
    assert queued.created_at < ended.started_at < ended.finished_at
    assert count_documents(database) == 0


def test_a_document_that_is_gone_is_an_error_and_not_an_empty_one(
    database: LiveDatabase, acme: str
):
    enqueue_documents(database.engine, acme, documents=[NOTE])
    started, _ = start(database, acme)
    with tenant_transaction(database.engine, [acme]) as connection:
        stored.end_job(connection, started, state="failed")
        with pytest.raises(psycopg.errors.NoDataFound, match="no document 1"):
            _read_directly(connection, started)


def _read_directly(connection: Connection, job: StartedJob) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute("select contextforge.read_job_document(%s, %s, 1)", (job.tenant_id, job.job_id))


def test_cancelling_a_queued_job_takes_it_and_its_documents_away(database: LiveDatabase, acme: str):
    job = enqueue_documents(database.engine, acme, documents=[NOTE])
    assert cancel_job(database.engine, acme, job_id=job.job_id) == "cancelled"

    assert get_job(database.engine, [acme], job_id=job.job_id).state == "cancelled"
    assert (count_documents(database), count_queue(database)) == (0, 0)
    assert cancel_job(database.engine, acme, job_id=job.job_id) == "cancelled"


def test_a_job_cancelled_before_its_worker_began_is_not_begun(database: LiveDatabase, acme: str):
    job = enqueue_job(database.engine, acme, kind="tidy")
    fetch(database)
    assert cancel_job(database.engine, acme, job_id=job.job_id) == "cancelled"

    with tenant_transaction(database.engine, [acme]) as connection:
        assert stored.start_job(connection, acme, job_id=job.job_id) is None


def test_a_running_job_is_asked_to_stop_and_an_ended_one_stays_as_it_is(
    database: LiveDatabase, acme: str
):
    job = enqueue_job(database.engine, acme, kind="tidy")
    started, _ = start(database, acme)
    assert cancel_job(database.engine, acme, job_id=job.job_id) == "running"
    asked = "select abort_requested from contextforge_queue.procrastinate_jobs"
    assert ask_owner(database, asked) is True

    with tenant_transaction(database.engine, [acme]) as connection:
        stored.end_job(connection, started, state="succeeded")
    assert cancel_job(database.engine, acme, job_id=job.job_id) == "succeeded"


def test_a_failed_or_cancelled_job_can_be_queued_again(database: LiveDatabase, acme: str):
    job = enqueue_job(database.engine, acme, kind="tidy")
    started, _ = start(database, acme)
    with pytest.raises(Conflict, match="is running"):
        retry_job(database.engine, acme, job_id=job.job_id)
    with tenant_transaction(database.engine, [acme]) as connection:
        stored.end_job(connection, started, state="failed", error=JobError("conflict", "No."))
    assert get_job(database.engine, [acme], job_id=job.job_id).error == JobError("conflict", "No.")

    retry_job(database.engine, acme, job_id=job.job_id)
    again = get_job(database.engine, [acme], job_id=job.job_id)
    assert (again.state, again.error, again.finished_at) == ("queued", None, None)
    cancel_job(database.engine, acme, job_id=job.job_id)
    retry_job(database.engine, acme, job_id=job.job_id)
    assert get_job(database.engine, [acme], job_id=job.job_id).state == "queued"


def test_a_job_whose_documents_are_gone_cannot_be_queued_again(database: LiveDatabase, acme: str):
    job = enqueue_documents(database.engine, acme, documents=[NOTE])
    cancel_job(database.engine, acme, job_id=job.job_id)
    with pytest.raises(Conflict, match=r"documents of job .* are gone"):
        retry_job(database.engine, acme, job_id=job.job_id)


# --- lost workers -------------------------------------------------------------------------------


def test_the_job_of_a_silent_worker_is_queued_again_and_that_of_a_live_one_is_not(
    database: LiveDatabase, acme: str, globex: str
):
    lost = enqueue_documents(database.engine, acme, documents=[NOTE])
    _, dead = start(database, acme)
    kept = enqueue_job(database.engine, globex, kind="tidy")
    start(database, globex)
    silence_worker(database, dead)

    assert settle(database) == 1
    assert get_job(database.engine, [acme], job_id=lost.job_id).state == "queued"
    assert get_job(database.engine, [globex], job_id=kept.job_id).state == "running"
    assert count_documents(database) == 1
    again, _ = start(database, acme)
    assert again.job_id == lost.job_id
    assert settle(database) == 0


def test_a_job_that_loses_its_worker_again_and_again_fails(database: LiveDatabase, acme: str):
    job = enqueue_documents(database.engine, acme, documents=[NOTE])
    for _ in range(10):
        _, worker = start(database, acme)
        silence_worker(database, worker)
        settle(database)

    ended = get_job(database.engine, [acme], job_id=job.job_id)
    assert ended.state == "failed"
    assert ended.error is not None
    assert ended.error.code == "interrupted"
    assert (count_documents(database), count_queue(database)) == (0, 0)


def test_a_cancelled_job_whose_worker_dies_is_cancelled(database: LiveDatabase, acme: str):
    job = enqueue_job(database.engine, acme, kind="tidy")
    _, worker = start(database, acme)
    cancel_job(database.engine, acme, job_id=job.job_id)
    silence_worker(database, worker)
    settle(database)

    ended = get_job(database.engine, [acme], job_id=job.job_id)
    assert (ended.state, ended.error) == ("cancelled", None)


# --- what is refused, and what goes ---------------------------------------------------------------


def test_what_can_never_work_is_not_queued(database: LiveDatabase, acme: str):
    def documents(*given: InlineDocument) -> Callable[[], object]:
        return lambda: enqueue_documents(database.engine, acme, documents=given)

    def paths(path: str, size: int = 400) -> Callable[[], object]:
        options = IngestOptions(size=size)
        return lambda: enqueue_paths(database.engine, acme, paths=[path], options=options)

    refused: dict[str, Callable[[], object]] = {
        "no documents": documents(),
        "Two documents": documents(NOTE, NOTE),
        "is empty": documents(InlineDocument(" ", b"x")),
        "NUL byte": documents(InlineDocument("a\0", b"x")),
        "standard input": paths("-"),
        "size": paths("a", size=0),
        "jobs_kind_check": lambda: enqueue_job(database.engine, acme, kind="Not A Kind"),
    }
    for reason, enqueue in refused.items():
        with pytest.raises(InvalidInput, match=reason):
            enqueue()
    assert list_jobs(database.engine, [acme]) == []
    assert count_queue(database) == 0


def test_work_for_a_tenant_that_does_not_exist_is_not_queued(database: LiveDatabase):
    options = IngestOptions()
    with pytest.raises(NotFound, match='tenant "nobody" does not exist'):
        enqueue_schema(database.engine, "nobody", document=NOTE, options=options)


def test_a_deleted_tenant_takes_its_jobs_along(database: LiveDatabase, acme: str, globex: str):
    job = enqueue_documents(database.engine, acme, documents=[NOTE])
    enqueue_documents(database.engine, globex, documents=[NOTE])
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("select delete_tenant('acme')")

    assert count_documents(database) == 1
    with worker_transaction(database.engine) as connection:
        assert stored.job_tenant(connection, job.job_id) is None


def test_pruning_forgets_the_ended_jobs_of_one_tenant(
    database: LiveDatabase, acme: str, globex: str
):
    for tenant in (acme, globex):
        for state in ("old", "new", "open"):
            job = enqueue_job(database.engine, tenant, kind=state)
            if state != "open":
                cancel_job(database.engine, tenant, job_id=job.job_id)
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.jobs set finished_at = now() - interval '15 days'"
            " where kind = 'old'"
        )
        assert stored.prune_jobs(connection, acme, older_than=timedelta(days=14)) == 1

    assert {job.kind for job in list_jobs(database.engine, [acme])} == {"new", "open"}
    assert len(list_jobs(database.engine, [globex])) == 3


def test_the_service_cannot_prune(database: LiveDatabase, acme: str):
    with pytest.raises(ServiceError), plain_transaction(database.engine) as connection:
        stored.prune_jobs(connection, acme, older_than=timedelta(0))
