"""Traces that are written beside the requests, and feedback on them, each with a second tenant."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from uuid import uuid4

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Connection

from service.api.app import create_app
from service.db.database import Database
from service.db.engine import tenant_transaction
from service.pipeline import Pipeline
from service.quality.feedback import Rated, give_feedback
from service.quality.recorder import Recorder
from service.quality.recording import name_caller, record_results, record_shown
from service.retrieval.request import RetrievalRequest
from tests.api.conftest import MakeKey, Tenant, app_for, settings_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

QUERY = "When is a parcel delivered?"
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def read(database: LiveDatabase, statement: str, tenant: str = "acme") -> list[tuple[object, ...]]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


def count_lost(app: FastAPI) -> float:
    figures = app.state.services.metrics.render().decode().splitlines()
    [line] = [each for each in figures if each.startswith("contextforge_records_lost_total ")]
    return float(line.split()[1])


# --- the recorder --------------------------------------------------------------------------------


class Kept:
    """A writer that keeps what it is given, and fails at what it is told to."""

    def __init__(self, *, failing: Sequence[object] = ()) -> None:
        self.batches: list[tuple[str, list[object]]] = []
        self._failing = failing

    def write(self, connection: Connection, tenant_id: str, rows: Sequence[object]) -> None:
        seen = connection.exec_driver_sql("show app.tenant_ids").scalar()
        assert seen == tenant_id
        if set(rows) & set(self._failing):
            raise ValueError("a bad row")
        self.batches.append((tenant_id, list(rows)))


def test_rows_are_written_by_tenant_in_batches_and_a_bad_row_loses_itself_alone(
    database: LiveDatabase,
):
    lost: list[int] = []
    recorder = Recorder(database.engine, on_lost=lost.append)
    kept = Kept(failing=[3])
    write = kept.write
    for row in range(6):
        assert recorder.submit("acme" if row % 2 else "globex", write, row)
    recorder.close()
    assert kept.batches == [("globex", [0, 2, 4]), ("acme", [1]), ("acme", [5])]
    assert lost == [1]


def test_a_full_queue_loses_rows_at_once_and_flush_waits_no_longer_than_it_may(
    database: LiveDatabase,
):
    lost: list[int] = []
    recorder = Recorder(database.engine, on_lost=lost.append, most_waiting=2, flush_seconds=0)
    going, hold = Event(), Event()

    def block(_: Connection, __: str, ___: Sequence[int]) -> None:
        going.set()
        hold.wait(5)

    recorder.submit("acme", block, 0)
    assert going.wait(5)
    assert [recorder.submit("acme", block, row) for row in range(4)] == [True, True, False, False]
    started = time.perf_counter()
    assert not recorder.flush(seconds=0.05)
    assert time.perf_counter() - started < 1
    hold.set()
    assert recorder.flush(seconds=5)
    recorder.close()
    assert lost == [1, 1]
    assert not recorder.submit("acme", block, 9)


def test_requests_answer_while_the_records_cannot_be_written(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    app = create_app(
        settings_for(database.service_url),
        database=Database(database.engine, NOWHERE),
        embedder=TinyEmbedder(),
    )
    with TestClient(app, raise_server_exceptions=False) as client:
        acme = Tenant(make_tenant("acme"), make_key("acme"), client)
        trace_id = acme.search()["trace_id"]
        acme.search()
        assert acme.get(f"/v1/traces/{trace_id}").status_code == 404
        assert count_lost(app) == 2
    assert read(database, "select count(*) from traces") == [(0,)]


def test_what_waits_is_written_when_the_service_stops(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    with TestClient(app_for(database, contextforge_keep_questions=False)) as client:
        acme = Tenant(make_tenant("acme"), make_key("acme"), client)
        for _ in range(3):
            acme.search()
    assert read(database, "select count(*) from traces") == [(3,)]
    assert read(database, "select count(*) from asked_questions") == [(0,)]


def test_a_trace_says_who_asked_what_kind_of_question_and_whether_it_was_remembered(
    acme: Tenant, globex: Tenant, database: LiveDatabase
):
    for caller in ({}, {"X-Caller": "user 7"}):
        acme.post("/v1/search", {"query": QUERY}, headers=caller)
    trace_id = globex.post("/v1/search", {"query": QUERY}, headers={"X-Caller": "user 7"}).json()[
        "trace_id"
    ]
    assert globex.get(f"/v1/traces/{trace_id}").json()["intent"] == "other"
    rows = read(database, "select caller, intent, cached, error from traces order by created_at")
    assert rows[0][0] == acme.key.split("_")[1]
    assert rows[1] == (name_caller("acme", "user 7"), "other", True, None)
    [[other]] = read(database, "select caller from traces", "globex")
    assert other == name_caller("globex", "user 7") != rows[1][0]
    questions = "select question from asked_questions"
    assert read(database, questions) == read(database, questions, "globex") == [(QUERY,)]


@pytest.mark.parametrize("label", ["", "x" * 201])
def test_a_caller_that_cannot_be_one_is_refused(acme: Tenant, label: str):
    response = acme.post("/v1/search", {"query": QUERY}, headers={"X-Caller": label})
    assert response.status_code == 422


def test_a_retrieval_that_fails_is_on_record_without_nodes(acme: Tenant, database: LiveDatabase):
    with database.admin.begin() as connection:
        connection.exec_driver_sql("alter function hybrid_search_nodes rename to gone")
    assert acme.post("/v1/search", {"query": QUERY}).status_code == 500
    with database.admin.begin() as connection:
        connection.exec_driver_sql("alter function gone rename to hybrid_search_nodes")
    acme.get(f"/v1/traces/{acme.search()['trace_id']}")
    failed = "select error, cardinality(node_ids) from traces where error is not null"
    assert read(database, failed) == [("database_unsuitable", 0)]


# --- feedback ------------------------------------------------------------------------------------


def test_feedback_names_its_node_by_trace_or_question_and_is_kept_once(
    acme: Tenant, database: LiveDatabase
):
    found = acme.search(QUERY)
    shown = [hit["node"]["node_id"] for hit in found["hits"]]
    given = {"trace_id": found["trace_id"], "signal": "clicked", "node_id": shown[1]}
    first = acme.post("/v1/feedback", given)
    assert (first.status_code, first.json()["position"]) == (201, 2)
    assert acme.post("/v1/feedback", given).json() == first.json()
    by_question = {"query": QUERY, "signal": "clicked", "node_id": shown[1]}
    assert acme.post("/v1/feedback", by_question).json() == first.json()
    whole = {"query": QUERY, "signal": "answer_accepted"}
    assert acme.post("/v1/feedback", whole).json()["position"] is None
    kept = "select signal, position, score is not null, question, intent from shown_feedback"
    assert read(database, f"{kept} order by signal") == [
        ("answer_accepted", None, False, QUERY, "other"),
        ("clicked", 2, True, QUERY, "other"),
    ]


def test_a_question_means_the_callers_own_newest_search(acme: Tenant):
    mine, theirs = {"X-Caller": "me"}, {"X-Caller": "somebody else"}
    acme.post("/v1/search", {"query": QUERY}, headers=mine)
    newest = acme.post("/v1/search", {"query": QUERY}, headers=mine).json()
    given = {"query": QUERY, "signal": "helpful"}
    kept = acme.post("/v1/feedback", given, headers=mine).json()
    assert kept["trace_id"] == newest["trace_id"]
    assert acme.post("/v1/feedback", given, headers=theirs).status_code == 404


def test_what_was_not_shown_to_a_tenant_is_answered_as_what_does_not_exist(
    acme: Tenant, globex: Tenant
):
    found, foreign = acme.search(QUERY), globex.search(QUERY)
    own, other = (each["hits"][0]["node"]["node_id"] for each in (found, foreign))
    asked = [
        {"trace_id": found["trace_id"], "node_id": 999_999},
        {"trace_id": found["trace_id"], "node_id": other},
        {"trace_id": foreign["trace_id"], "node_id": other},
        {"trace_id": foreign["trace_id"], "node_id": own},
        {"trace_id": str(uuid4()), "node_id": own},
        {"query": "never asked", "node_id": own},
    ]
    answers = [acme.post("/v1/feedback", {**each, "signal": "helpful"}) for each in asked]
    assert {each.status_code for each in answers} == {404}
    assert len({(each.json()["detail"], each.json()["hint"]) for each in answers}) == 1


@pytest.mark.parametrize("which", [{}, {"query": QUERY, "trace_id": str(uuid4())}])
def test_feedback_on_nothing_or_two_things_is_refused(acme: Tenant, which: dict[str, str]):
    assert acme.post("/v1/feedback", {**which, "signal": "helpful"}).status_code == 422


def test_a_flood_of_feedback_is_refused_for_its_caller_alone(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    with TestClient(app_for(database, contextforge_feedback_per_hour=2)) as client:
        acme = Tenant(make_tenant("acme"), make_key("acme"), client)
        trace_id = acme.search()["trace_id"]
        signals = ("clicked", "helpful", "cited")
        flood = [
            acme.post("/v1/feedback", {"trace_id": trace_id, "signal": signal})
            for signal in signals
        ]
        assert [each.status_code for each in flood] == [201, 201, 429]
        assert 3500 < int(flood[-1].headers["Retry-After"]) <= 3600
        other = acme.post(
            "/v1/feedback",
            {"trace_id": trace_id, "signal": "cited"},
            headers={"X-Caller": "somebody"},
        )
        assert other.status_code == 201


def test_the_same_in_python(acme: Tenant, globex: Tenant, database: LiveDatabase):
    engine, caller = database.engine, name_caller("acme", "user 7")
    pipeline = Pipeline(engine, settings_for(database.service_url), embedder=TinyEmbedder())
    request = RetrievalRequest(
        QUERY, ("acme",), changes={"confidence_threshold": 0.0}, caller=caller
    )
    found = pipeline.retrieve(request)
    trace_id = record_shown(engine, found, caller=caller)
    node_id = found.candidates[0].node.node_id
    rated = Rated(trace_id, node_id=node_id)
    kept = give_feedback(engine, "acme", rated=rated, caller=caller, signal="helpful")
    assert kept.place.position == 1
    again = give_feedback(engine, "acme", rated=rated, caller=caller, signal="helpful", note="!")
    assert again == replace(kept, note=None)
    agents = [{"node_id": node_id, "score": 0.5, "title": "Parcels"}]
    other = record_results(engine, "acme", query=QUERY, results=agents, caller=caller)
    newest = give_feedback(
        engine, "acme", rated=Rated(query=QUERY), caller=caller, signal="not_helpful"
    )
    assert newest.place.trace_id == other
    assert read(database, "select count(*) from shown_feedback") == [(2,)]
    assert read(database, "select count(*) from shown_feedback", "globex") == [(0,)]
