"""What every request has: an id, problems, limits, figures, a page that explains the rest."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from service.api.app import create_app as build_app
from service.api.logs import configure_logs
from service.db.database import Database
from service.db.engine import open_engine, owner_transaction
from service.settings import Settings
from tests.api.conftest import METRICS_TOKEN, MakeKey, Tenant, app_for, settings_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

PROBLEM = "application/problem+json"
SEARCH = {"query": "parcel"}
MEBIBYTE = 1024 * 1024


@contextmanager
def serving(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def read_metric(client: TestClient, name: str, **labels: str) -> float:
    shown = client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
    families = text_string_to_metric_families(shown.text)
    samples = (sample for family in families for sample in family.samples)
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


# --- ids and problems ----------------------------------------------------------------------------


def test_a_request_id_is_kept_and_one_is_made_where_there_is_none_that_fits(client: TestClient):
    sent = client.get("/healthz", headers={"X-Request-ID": "abc-1.2:3"})
    assert sent.headers["x-request-id"] == "abc-1.2:3"
    for unfit in ("", "a b", "x" * 200, "<script>"):
        made = client.get("/healthz", headers={"X-Request-ID": unfit}).headers["x-request-id"]
        assert len(made) == 32
        assert made != unfit


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/search", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_what_the_framework_refuses_is_a_problem_too(
    client: TestClient, method: str, path: str, status: int, code: str
):
    response = client.request(method, path, headers={"X-Request-ID": "r1"})
    assert response.status_code == status
    assert response.headers["content-type"] == PROBLEM
    problem = response.json()
    assert problem["type"] == f"urn:contextforge:error:{code}"
    assert problem["instance"] == "urn:contextforge:request:r1"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "body.query"),
        ({"query": "  "}, "body.query"),
        ({"query": "a\x00b"}, "body.query"),
        ({"query": "a", "max_results": 0}, "body.max_results"),
        ({"query": "a", "unknown": 1}, "body.unknown"),
        ({"query": "a", "options": {"bm25_weight": 0, "vector_weight": 0}}, "body.options"),
        ({"query": "a", "filters": {"acl": ["boss"]}}, "body.filters.acl"),
    ],
)
def test_a_flaw_is_named_with_its_place_and_not_repeated(
    acme: Tenant, body: dict[str, object], place: str
):
    response = acme.post("/v1/search", body)
    assert response.status_code == 422
    assert response.headers["content-type"] == PROBLEM
    assert [flaw["place"] for flaw in response.json()["errors"]] == [place]


def test_a_body_that_is_no_json_is_a_problem(acme: Tenant):
    for content, kind in ((b"{broken", "application/json"), (b"{}", "text/plain")):
        response = acme.call("POST", "/v1/search", content=content, headers={"Content-Type": kind})
        assert response.status_code == 422
        assert response.headers["content-type"] == PROBLEM


def test_a_failure_nobody_foresaw_is_a_problem_without_its_reason(app: FastAPI):
    @app.get("/broken")
    def fail() -> None:
        raise RuntimeError("secret text")

    with serving(app) as client:
        response = client.get("/broken", headers={"X-Request-ID": "r1"})
        assert response.status_code == 500
        assert response.headers["content-type"] == PROBLEM
        assert response.headers["x-request-id"] == "r1"
        assert "secret" not in response.text
        assert read_metric(client, "contextforge_errors_total", code="internal") == 1


# --- limits --------------------------------------------------------------------------------------


def test_a_key_that_is_used_too_often_waits_as_long_as_it_is_told(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    make_tenant("acme")
    key, other = make_key("acme"), make_key("acme")
    app = app_for(database, contextforge_rate_limit=6, contextforge_rate_burst=3)
    with serving(app) as client:
        tenant = Tenant("acme", key, client)
        statuses = [tenant.get("/v1/nodes").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = tenant.get("/v1/nodes")
        assert refused.headers["content-type"] == PROBLEM
        assert 1 <= int(refused.headers["retry-after"]) <= 10
        assert Tenant("acme", other, client).get("/v1/nodes").status_code == 200
        with owner_transaction(database.admin) as connection:  # as if ten seconds had passed
            connection.exec_driver_sql(
                "update contextforge.key_buckets set full_at = full_at - interval '10 s'"
            )
        assert [tenant.get("/v1/nodes").status_code for _ in range(2)] == [200, 429]


def test_two_processes_count_one_keys_requests_together(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    make_tenant("acme")
    key = make_key("acme")
    limits: dict[str, Any] = {"contextforge_rate_limit": 60, "contextforge_rate_burst": 4}
    with serving(app_for(database, **limits)) as one, serving(app_for(database, **limits)) as two:
        tenants = [Tenant("acme", key, one), Tenant("acme", key, two)]
        statuses = [tenant.get("/v1/nodes").status_code for _ in range(3) for tenant in tenants]
    assert statuses == [200] * 4 + [429] * 2


def test_a_body_that_is_too_large_is_refused_before_it_is_read(acme: Tenant):
    headers = {"Content-Type": "application/json", "Content-Length": str(2 * MEBIBYTE)}
    response = acme.call("POST", "/v1/search", content=b"{}", headers=headers)
    assert response.status_code == 413
    assert response.json()["code"] == "body_too_large"


def test_a_body_of_unknown_length_is_read_no_further_than_the_limit(acme: Tenant):
    sent = 0

    def drip() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1
            yield b" " * (MEBIBYTE // 4)

    response = acme.call(
        "POST", "/v1/search", content=drip(), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413
    assert response.json()["code"] == "body_too_large"


def test_documents_may_be_larger_than_questions(acme: Tenant):
    text = "# Large\n\n" + "The courier rings twice. " * (MEBIBYTE // 20)
    response = acme.post("/v1/documents", {"documents": [{"name": "l.md", "content": text}]})
    assert response.status_code == 202


def test_an_exhausted_pool_is_503_within_about_a_second_while_health_answers(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    make_tenant("acme")
    engine = open_engine(database.service_url, pool_size=1)
    app = build_app(
        settings_for(database.service_url),
        database=Database(engine, database.service_url),
        embedder=TinyEmbedder(),
    )
    with serving(app) as client, engine.connect():
        tenant = Tenant("acme", make_key("acme"), client)
        started = time.monotonic()
        response = tenant.post("/v1/search", SEARCH)
        assert time.monotonic() - started < 2
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert response.headers["content-type"] == PROBLEM
        assert client.get("/healthz").status_code == 200
        assert read_metric(client, "contextforge_pool_connections", state="in_use") == 1
    engine.dispose()


# --- figures, logs, the page ---------------------------------------------------------------------


def test_metrics_count_requests_steps_errors_and_cache_hits(acme: Tenant):
    acme.search("parcel")
    acme.search("parcel")
    acme.post("/v1/search", {})
    route = {"route": "/v1/search"}
    client = acme.client
    assert read_metric(client, "contextforge_requests_total", status="200", **route) == 2
    assert read_metric(client, "contextforge_request_seconds_count", **route) == 3
    assert read_metric(client, "contextforge_errors_total", code="invalid_input") == 1
    assert read_metric(client, "contextforge_cache_lookups_total", result="hit") == 1
    assert read_metric(client, "contextforge_cache_lookups_total", result="miss") == 1
    for step in ("embed", "search", "walk"):
        assert read_metric(client, "contextforge_step_seconds_count", step=step) >= 1


@pytest.fixture
def restored_logs() -> Iterator[None]:
    root, level = logging.getLogger(), logging.getLogger().level
    handlers = root.handlers[:]
    yield
    root.handlers, root.level = handlers, level
    logging.getLogger("uvicorn.access").disabled = False
    for name in ("service", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_logs_are_json_without_texts_keys_or_embeddings(
    acme: Tenant, capsys: pytest.CaptureFixture[str], restored_logs: None
):
    configure_logs(Settings())
    acme.post("/v1/search", {"query": "purple elephant", "options": {"multi_query": True}})
    acme.get("/v1/nodes?metadata=%7B%22purple%22%3A1%7D")
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    events = [json.loads(line) for line in lines]
    requests = [event for event in events if event["event"] == "request"]
    assert [event["route"] for event in requests] == ["/v1/search", "/v1/nodes"]
    assert requests[0]["tenant_id"] == "acme"
    assert requests[0]["status"] == 200
    assert requests[0]["request_id"]
    assert any("expansion" in event["event"] for event in events)
    for secret in ("purple", "elephant", acme.key, acme.key[-20:]):
        assert secret not in "".join(lines)


def test_the_page_of_the_api_names_every_endpoint_and_asks_nobody_outside(client: TestClient):
    response = client.get("/docs")
    assert response.status_code == 200
    assert "default-src 'none'" in response.headers["content-security-policy"]
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in response.text
    assert "http://" not in response.text
    assert "https://" not in response.text


def test_every_endpoint_documents_its_problems_and_has_examples(client: TestClient):
    document = client.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path.startswith("/v1/"):
                assert {"401", "403", "413", "422", "429", "500", "503"} <= set(
                    operation["responses"]
                )
            assert operation["description"] or operation["summary"]
    for name in ("GivenSearch", "GivenNodes", "GivenFeedback", "ShownSearch"):
        assert '"examples"' in json.dumps(document["components"]["schemas"][name]), name
