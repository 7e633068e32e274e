"""A real server under strain: callers that vanish, a pool that is too small, an end by SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from service.api.app import create_app
from service.db.database import Database
from service.db.egress import set_egress_policy
from service.db.engine import open_engine, owner_transaction, plain_transaction
from service.db.guard import StatementGuard, guarded
from service.errors import ClientGone, DatabaseUnavailable, DeadlineExceeded
from tests.api.conftest import DOCUMENTS, MakeKey, app_for, settings_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.messages_server import Answer, make_message, run_messages_server
from tests.running_app import run_app
from tests.tiny_embedder import TinyEmbedder

ROOT = Path(__file__).resolve().parents[2]
MAIN = "from service.cli import main; main()"
TENANTS = [f"tenant{number}" for number in range(8)]


def count_running(database: LiveDatabase, text: str) -> int:
    with psycopg.connect(database.admin_url) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = current_database()"
            " and state = 'active' and query like %s and pid <> pg_backend_pid()",
            (f"%{text}%",),
        )
        return len(rows.fetchall())


def wait_for(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def store(url: str, key: str, documents: dict[str, str] = DOCUMENTS) -> None:
    body = {"documents": [{"name": name, "content": text} for name, text in documents.items()]}
    headers = {"Authorization": f"Bearer {key}"}
    response = httpx.post(f"{url}/v1/documents", json=body, headers=headers, timeout=60)
    assert response.status_code == 200, response.text


# --- the guard of statements ---------------------------------------------------------------------


def test_a_statement_of_a_request_ends_when_its_time_is_over(database: LiveDatabase):
    guard = StatementGuard(statement_seconds=0.1, request_seconds=60)
    with (
        guarded(guard),
        pytest.raises(DatabaseUnavailable),
        plain_transaction(database.engine) as connection,
    ):
        connection.exec_driver_sql("select pg_sleep(5)")
    with plain_transaction(database.engine) as connection:  # the limit was that transaction's
        assert connection.exec_driver_sql("show statement_timeout").scalar() == "0"


def test_a_request_that_is_late_asks_the_database_nothing_more(database: LiveDatabase):
    guard = StatementGuard(statement_seconds=1, request_seconds=0)
    with guarded(guard), pytest.raises(DeadlineExceeded), plain_transaction(database.engine):
        pass


def test_a_stopped_request_loses_its_statement_and_its_connection(database: LiveDatabase):
    guard = StatementGuard(statement_seconds=60, request_seconds=60)
    stopper = threading.Timer(0.3, guard.stop, [ClientGone("Gone.")])
    stopper.start()
    started = time.monotonic()
    pids: list[int] = []
    with guarded(guard), pytest.raises(ClientGone):
        _sleep(database, pids)
    assert time.monotonic() - started < 10
    stopper.join()
    with plain_transaction(database.engine) as connection:
        assert connection.exec_driver_sql("select pg_backend_pid()").scalar_one() not in pids
    with guarded(guard), pytest.raises(ClientGone), plain_transaction(database.engine):
        pass


def _sleep(database: LiveDatabase, pids: list[int]) -> None:
    with plain_transaction(database.engine) as connection:
        pids.append(connection.exec_driver_sql("select pg_backend_pid()").scalar_one())
        connection.exec_driver_sql("select pg_sleep(30)")


# --- callers that vanish -------------------------------------------------------------------------


@pytest.fixture
def key(make_tenant: MakeTenant, make_key: MakeKey) -> str:
    return make_key(make_tenant("acme"))


def test_the_query_of_a_vanished_caller_is_cancelled(database: LiveDatabase, key: str):
    with run_app(app_for(database)) as url:
        store(url, key)
        with database.admin.connect() as lock:
            # A search waits for it as long as it may.
            lock.exec_driver_sql("lock table contextforge.postings in access exclusive mode")
            # Two seconds: the statement itself may take ten.
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(
                    f"{url}/v1/search",
                    json={"query": "parcel"},
                    headers={"Authorization": f"Bearer {key}"},
                    timeout=2,
                )
            wait_for(lambda: count_running(database, "hybrid_search_nodes") == 0, seconds=4)
            lock.rollback()
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_64_requests_of_8_tenants_on_2_connections_see_no_foreign_row(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    engine = open_engine(database.service_url, pool_size=2)
    app = create_app(
        settings_for(database.service_url, contextforge_rate_limit=0),
        database=Database(engine, database.service_url),
        embedder=TinyEmbedder(),
    )
    chance = random.Random(7)
    keys = {name: make_key(make_tenant(name)) for name in TENANTS}
    with run_app(app) as url:
        for name, key in keys.items():
            marked = {f"{name}-{n}": f"{text} {name} owns this." for n, text in DOCUMENTS.items()}
            store(url, key, marked)
        seen = asyncio.run(_ask_at_once(url, keys, chance))
        answered = [each for each in seen if each.status == 200]
        assert len(answered) > 10
        assert {each.status for each in seen} <= {200, 503, 0}
        for each in answered:
            assert each.tenants <= {each.asked}
            others = [name for name in TENANTS if name != each.asked]
            assert not any(f"{name} owns" in each.text for name in others)
        wait_for(lambda: engine.pool.checkedout() == 0)  # type: ignore[attr-defined]
        for name, key in keys.items():  # and everybody is served afterwards
            answer = asyncio.run(_ask(url, name, key, patience=20))
            assert (answer.status, answer.tenants) == (200, {name})
    engine.dispose()


class _Seen:
    """What one request saw; status 0 for one that hung up itself."""

    def __init__(self, asked: str, response: httpx.Response | None) -> None:
        self.asked = asked
        self.status = 0 if response is None else response.status_code
        self.text = "" if response is None else response.text
        hits = json.loads(self.text)["hits"] if self.status == 200 else []
        self.tenants = {hit["node"]["tenant_id"] for hit in hits}


async def _ask(url: str, tenant: str, key: str, *, patience: float) -> _Seen:
    body = {"query": f"parcel {random.random()}", "max_results": 20}
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(timeout=patience) as client:
        try:
            response = await client.post(f"{url}/v1/search", json=body, headers=headers)
        except httpx.TimeoutException:
            response = None
    return _Seen(tenant, response)


async def _ask_at_once(url: str, keys: dict[str, str], chance: random.Random) -> list[_Seen]:
    asked = [
        _ask(url, name, key, patience=chance.choice([0.05, 0.2, 20, 20]))
        for _ in range(8)
        for name, key in keys.items()
    ]
    return list(await asyncio.gather(*asked))


# --- processes -----------------------------------------------------------------------------------


def take_time(seconds: float) -> Answer:
    """Answer rightly, but late."""

    def answer(handler: object, request: dict[str, object]) -> None:
        time.sleep(seconds)
        handler.send_json(200, make_message("Within two days [1]."))  # type: ignore[attr-defined]

    return answer


@contextmanager
def serving_process(
    database: LiveDatabase, *options: str, **environment: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`contextforge serve` in a process of its own, ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = Path(tempfile.mkdtemp(prefix="cf-serve-"))
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database.service_url,
        "EMBEDDING_DIM": "384",
        **environment,
    }
    with (home / "log").open("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", "--port", str(port), *options],
            cwd=home,
            env=variables,
            stderr=log,
            text=True,
        )
        try:
            wait_for(lambda: process.poll() is not None or _is_ready(port), seconds=90)
            assert process.poll() is None, (home / "log").read_text()
            yield f"http://127.0.0.1:{port}", process
        finally:
            process.terminate()
            process.wait(timeout=90)
            shutil.rmtree(home, ignore_errors=True)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=1).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def whole(make_database: Callable[..., LiveDatabase]) -> LiveDatabase:
    """A database for the shipped embedder, with a tenant that allows Claude."""
    database = make_database(embedding_dim=384)
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("select create_tenant('acme')")
        set_egress_policy(connection, "acme", policy="all")
    return database


def make_key_in(database: LiveDatabase) -> str:
    from service.db.registry import create_key

    with owner_transaction(database.admin) as connection:
        made = create_key(
            connection, "test", tenant_ids=["acme"], scopes=["search", "ingest", "admin"]
        )
    return made.text


@pytest.mark.slow
def test_sigterm_lets_a_request_in_hand_finish(whole: LiveDatabase):
    key = make_key_in(whole)
    with (
        run_messages_server(take_time(3)) as claude,
        serving_process(whole, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=claude.base_url) as (
            url,
            process,
        ),
    ):
        store(url, key)
        answers: list[httpx.Response] = []
        body = {"query": "When is a parcel delivered?", "options": {"confidence_threshold": 0}}
        headers = {"Authorization": f"Bearer {key}"}

        def ask() -> None:
            answers.append(httpx.post(f"{url}/v1/answer", json=body, headers=headers, timeout=60))

        asking = threading.Thread(target=ask)
        asking.start()
        wait_for(lambda: len(claude.requests) == 1, seconds=30)
        process.send_signal(signal.SIGTERM)
        asking.join()
        assert process.wait(timeout=30) == -signal.SIGTERM
        assert answers[0].status_code == 200
        assert answers[0].json()["mode"] == "claude"


@pytest.mark.slow
def test_several_workers_share_the_database_and_add_up_their_figures(whole: LiveDatabase):
    key = make_key_in(whole)
    with serving_process(whole, "--workers", "2") as (url, _):
        store(url, key)
        headers = {"Authorization": f"Bearer {key}"}
        for number in range(20):
            body = {"query": f"parcel {number}"}
            response = httpx.post(f"{url}/v1/search", json=body, headers=headers, timeout=30)
            assert response.status_code == 200
        text = httpx.get(f"{url}/metrics").text
        wanted = 'contextforge_requests_total{method="POST",route="/v1/search",status="200"} 20.0'
        assert wanted in text
