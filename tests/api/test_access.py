"""Who may call: keys, scopes, tenants, groups, and the demo that needs no key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from service.db.engine import owner_transaction
from service.db.registry import list_keys, revoke_key
from tests.api.conftest import MakeKey, Tenant, app_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase

SEARCH = {"query": "parcel"}
UNKNOWN_KEY = f"Bearer cf_{'0' * 12}_{'A' * 43}"
ENDPOINTS = [
    *(("POST", "/v1/search"), ("POST", "/v1/context"), ("POST", "/v1/answer")),
    *(("POST", "/v1/documents"), ("GET", "/v1/nodes"), ("PUT", "/v1/nodes")),
    *(("DELETE", "/v1/nodes"), ("GET", "/v1/nodes/1"), ("GET", "/v1/nodes/1/similar")),
    *(("POST", "/v1/links"), ("POST", "/v1/graph"), ("POST", "/v1/fields")),
    *(("POST", "/v1/examples"), ("POST", "/v1/schema-context"), ("GET", "/v1/jobs/1")),
    *(("POST", "/v1/feedback"), ("GET", "/v1/traces/1"), ("GET", "/v1/egress")),
    ("GET", "/v1/stats"),
]


def bearer(key: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **more}


def test_the_list_above_is_the_whole_api(client: TestClient):
    paths = client.get("/openapi.json").json()["paths"]
    known = {
        (method.upper(), path.replace("{node_id}", "1").replace("{job_id}", "1"))
        for path, operations in paths.items()
        for method in operations
        if path.startswith("/v1/")
    }
    assert {(method, path.replace("{trace_id}", "1")) for method, path in known} == set(ENDPOINTS)


@pytest.mark.parametrize("sent", [None, "Bearer", "Basic abc", "Bearer wrong", UNKNOWN_KEY])
def test_without_a_valid_key_nothing_is_answered(client: TestClient, sent: str | None):
    headers = {} if sent is None else {"Authorization": sent}
    for method, path in ENDPOINTS:
        response = client.request(method, path, headers=headers)
        assert response.status_code == 401, path
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["code"] == "unauthenticated"


def test_a_foreign_tenant_is_refused_alike_whether_or_not_it_exists(
    client: TestClient, make_tenant: MakeTenant, make_key: MakeKey
):
    make_tenant("acme")
    make_tenant("globex")
    key = make_key("acme")
    for method, path in ENDPOINTS:
        bodies = []
        for tenant in ("globex", "nobody", "not a name"):
            response = client.request(method, path, headers=bearer(key, **{"X-Tenant": tenant}))
            assert response.status_code == 403, path
            bodies.append({k: v for k, v in response.json().items() if k != "instance"})
        assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/search", "search"),
        ("PUT", "/v1/nodes", "ingest"),
        ("DELETE", "/v1/nodes", "ingest"),
        ("POST", "/v1/documents", "ingest"),
        ("POST", "/v1/links", "ingest"),
        ("GET", "/v1/egress", "admin"),
        ("GET", "/v1/stats", "admin"),
    ],
)
def test_a_key_without_the_scope_is_refused(
    client: TestClient,
    make_tenant: MakeTenant,
    make_key: MakeKey,
    method: str,
    path: str,
    scope: str,
):
    make_tenant("acme")
    others = [each for each in ("search", "ingest", "admin") if each != scope]
    response = client.request(method, path, headers=bearer(make_key("acme", scopes=others)))
    assert response.status_code == 403
    assert scope in response.json()["detail"]


def test_a_key_of_several_tenants_names_one(acme: Tenant, globex: Tenant, make_key: MakeKey):
    both = Tenant("both", make_key("acme", "globex"), acme.client)
    response = both.post("/v1/search", SEARCH)
    assert response.status_code == 422
    assert "X-Tenant" in response.json()["hint"]
    for name in ("acme", "globex"):
        found = both.post("/v1/search", SEARCH, headers={"X-Tenant": name}).json()
        assert {hit["node"]["tenant_id"] for hit in found["hits"]} == {name}


def test_a_revoked_key_is_refused_within_a_second(acme: Tenant, database: LiveDatabase):
    assert acme.post("/v1/search", SEARCH).status_code == 200
    with owner_transaction(database.admin) as connection:
        [key] = list_keys(connection)
        revoke_key(connection, key.key_id)
    revoked = time.monotonic()
    while acme.post("/v1/search", SEARCH).status_code != 401:
        assert time.monotonic() - revoked < 1


def test_an_expired_key_is_refused(client: TestClient, make_tenant: MakeTenant, make_key: MakeKey):
    make_tenant("acme")
    key = make_key("acme", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
    tenant = Tenant("acme", key, client)
    assert tenant.post("/v1/search", SEARCH).status_code == 200
    time.sleep(0.35)
    assert tenant.post("/v1/search", SEARCH).status_code == 401


def test_a_key_of_a_deleted_tenant_opens_nothing(acme: Tenant, database: LiveDatabase):
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("select delete_tenant('acme')")
    assert acme.post("/v1/search", SEARCH).status_code == 401


def test_a_stranger_is_refused_before_the_body_is_looked_at(client: TestClient):
    response = client.post("/v1/search", content=b"{broken", headers={"Content-Type": "text/plain"})
    assert response.status_code == 401


# --- the demo ------------------------------------------------------------------------------------


@pytest.fixture
def demo(database: LiveDatabase, make_tenant: MakeTenant) -> Iterator[TestClient]:
    make_tenant("demo")
    make_tenant("acme")
    app = app_for(database, demo=True)
    with TestClient(app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 5)) as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_the_demo_answers_this_machine_without_a_key(demo: TestClient, host: str):
    assert demo.post("/v1/search", json=SEARCH, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},  # a name that leads here: DNS rebinding
        {"Host": "localhost.evil.example"},
        {"Host": ""},
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"},
        {"Via": "1.1 proxy"},
        {"Authorization": "Bearer wrong"},
    ],
)
def test_the_demo_is_for_nobody_else(demo: TestClient, headers: dict[str, str]):
    assert demo.post("/v1/search", json=SEARCH, headers=headers).status_code == 401


def test_the_demo_cannot_be_written_to_nor_left(demo: TestClient):
    assert demo.put("/v1/nodes", json={}).status_code == 403
    assert demo.get("/v1/egress").status_code == 403
    assert demo.post("/v1/search", json=SEARCH, headers={"X-Tenant": "acme"}).status_code == 403


def test_the_demo_is_not_for_other_machines(database: LiveDatabase, make_tenant: MakeTenant):
    make_tenant("demo")
    app = app_for(database, demo=True)
    with TestClient(app, base_url="http://127.0.0.1", client=("192.0.2.7", 5)) as client:
        assert client.post("/v1/search", json=SEARCH).status_code == 401


def test_without_demo_mode_a_key_is_needed_on_this_machine_too(
    database: LiveDatabase, make_tenant: MakeTenant
):
    make_tenant("demo")
    app = app_for(database)
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as client:
        assert client.post("/v1/search", json=SEARCH).status_code == 401
