"""POST /v1/answer as JSON and as events, read by a real client from a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from service.db.egress import set_egress_policy
from service.db.engine import owner_transaction
from tests.api.conftest import MakeKey, Tenant, app_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.messages_server import MessagesServer, fail, run_messages_server, say
from tests.running_app import run_app

QUESTION = {"query": "When is a parcel delivered?", "options": {"confidence_threshold": 0}}


@dataclass(frozen=True)
class Event:
    name: str
    data: dict[str, Any]


def read_events(lines: Iterator[str]) -> list[Event]:
    """Read server-sent events as the standard has them."""
    events, name = [], "message"
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            events.append(Event(name, json.loads(line.removeprefix("data: "))))
    return events


def stream(url: str, key: str, body: dict[str, Any] = QUESTION) -> list[Event]:
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with httpx.stream("POST", f"{url}/v1/answer", json=body, headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return read_events(response.iter_lines())


def test_without_claude_an_answer_is_made_of_the_sources_own_sentences(acme: Tenant):
    response = acme.post("/v1/answer", QUESTION)
    assert response.status_code == 200, response.text
    given = response.json()
    assert given["mode"] == "extractive"
    assert "API key" in given["notice"]
    assert given["citations"][0]["node_ids"]
    assert given["search"]["mode"] == "hybrid"
    assert {"prepare", "search", "write", "total"} <= {t["step"] for t in given["timings"]}
    assert given["trace"] is None


def test_explain_adds_the_steps_and_what_packing_did(acme: Tenant):
    trace = acme.post("/v1/answer", {**QUESTION, "explain": True}).json()["trace"]
    assert trace["retrieval"]["steps"]
    assert {each["outcome"] for each in trace["candidates"]} >= {"selected"}


def test_nothing_relevant_is_said_to_be_so(acme: Tenant):
    body = {"query": "zebra quantum violin", "options": {"confidence_threshold": 1}}
    given = acme.post("/v1/answer", body).json()
    assert (given["mode"], given["query_type"]) == ("gated", "confidence_gated_fallback")
    assert given["sources"] == []


def test_an_answer_is_made_of_its_own_tenant_alone(acme: Tenant, globex: Tenant):
    globex.store({"only.md": "# Zeppelin\n\n" + "The zeppelin lands on the roof at noon. " * 8})
    body = {"query": "zeppelin roof noon", "options": {"confidence_threshold": 0}}
    assert "zeppelin" in json.dumps(globex.post("/v1/answer", body).json()).lower()
    other = acme.post("/v1/answer", body).json()
    assert "zeppelin" not in json.dumps([other["answer"], other["citations"]]).lower()


# --- over a real connection ----------------------------------------------------------------------


@pytest.fixture
def claude() -> Iterator[MessagesServer]:
    with run_messages_server(say("Within two working days [1].")) as server:
        yield server


@pytest.fixture
def url(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey, claude: MessagesServer
) -> Iterator[str]:
    """A service with Claude, on a port of its own; acme allows everything, globex nothing."""
    for tenant in ("acme", "globex"):
        make_tenant(tenant)
    with owner_transaction(database.admin) as connection:
        set_egress_policy(connection, "acme", policy="all")
    app = app_for(database, anthropic_api_key="k", anthropic_base_url=claude.base_url)
    with run_app(app) as address:
        from tests.api.conftest import DOCUMENTS

        for tenant in ("acme", "globex"):
            body = {"documents": [{"name": n, "content": c} for n, c in DOCUMENTS.items()]}
            headers = {"Authorization": f"Bearer {make_key(tenant)}"}
            stored = httpx.post(f"{address}/v1/documents", json=body, headers=headers)
            assert stored.status_code == 200, stored.text
        yield address


def test_an_answer_streams_as_events_that_end_with_the_whole(url: str, make_key: MakeKey):
    events = stream(url, make_key("acme"))
    assert events[0].name == "search_results"
    assert events[0].data["sources"][0]["node_ids"]
    assert [event.name for event in events][-1] == "final_answer"
    final = events[-1].data
    assert final["mode"] == "claude"
    assert final["trace_id"] == events[0].data["trace_id"]
    written = "".join(event.data["text"] for event in events if event.name == "message")
    assert written.split() == final["answer"].split()
    [cited] = [event.data["citation"] for event in events if event.name == "citation"]
    assert cited == final["citations"][0]


def test_a_tenant_that_forbids_it_is_answered_without_claude(
    url: str, make_key: MakeKey, claude: MessagesServer
):
    events = stream(url, make_key("globex"))
    assert events[-1].data["mode"] == "extractive"
    assert claude.requests == []


def test_a_claude_that_fails_is_an_error_event_and_still_an_answer(
    url: str, make_key: MakeKey, claude: MessagesServer
):
    claude.will(fail(500))
    events = stream(url, make_key("acme"))
    assert "error" in [event.name for event in events]
    assert events[-1].name == "final_answer"
    assert events[-1].data["mode"] == "degraded"


def test_what_is_wrong_before_the_first_event_is_a_plain_problem(url: str, make_key: MakeKey):
    headers = {"Authorization": f"Bearer {make_key('acme')}", "Accept": "text/event-stream"}
    response = httpx.post(f"{url}/v1/answer", json={"query": ""}, headers=headers)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
