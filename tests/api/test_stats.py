"""How searches went: /v1/stats of a tenant, and /metrics for whoever may read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from service.client import Client
from service.db.ann_index import tune_ann_index
from service.db.engine import owner_transaction
from service.db.maintenance import refresh_ann
from service.db.stats import mark_size
from service.errors import Forbidden
from tests.api.conftest import METRICS_TOKEN, MakeKey, Tenant, app_for
from tests.api.test_edge import read_metric
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.running_app import run_app

ROOT = Path(__file__).resolve().parents[2]


def flush(client: TestClient) -> None:
    assert client.app.state.services.recorder.flush(seconds=10)  # type: ignore[attr-defined]


def give(tenant: Tenant, found: dict[str, Any], signal: str, *, place: int) -> None:
    hit = found["hits"][place - 1]
    body = {"trace_id": found["trace_id"], "signal": signal, "node_id": hit["node"]["node_id"]}
    assert tenant.post("/v1/feedback", body).status_code == 201


def test_stats_say_what_happened_to_the_keys_tenant_alone(acme: Tenant, globex: Tenant):
    give(acme, acme.search(), "clicked", place=2)
    give(acme, acme.search("May a parcel be returned?"), "not_helpful", place=1)
    acme.search()
    globex.search("something of globex")
    flush(acme.client)

    shown = acme.get("/v1/stats").json()
    traffic = shown["traffic"]
    assert shown["tenant_id"] == "acme"
    assert (traffic["searches"], traffic["errors"], traffic["judged"]) == (3, 0, 2)
    assert traffic["cache_hit_rate"] == pytest.approx(1 / 3)
    assert traffic["click_through"] == pytest.approx(1 / 3)
    assert traffic["mrr"] == pytest.approx((1 / 2 + 0) / 2)
    assert traffic["positive_in_top"] == pytest.approx(1 / 2)
    assert 0 < traffic["p50_ms"] <= traffic["p95_ms"] <= traffic["p99_ms"]
    steps = {each["step"]: each for each in shown["latencies"]}
    assert {"embed", "search", "total"} <= set(steps)
    assert shown["latencies"][-1]["step"] == "total"
    assert steps["total"]["times"] == 3
    assert sum(hour["searches"] for hour in shown["series"]["hours"]) == 3
    assert shown["storage"]["nodes"] == 4
    assert shown["storage"]["bytes"] is None
    assert globex.get("/v1/stats").json()["traffic"]["searches"] == 1


def test_marks_show_growth_and_are_the_tenants_own(
    acme: Tenant, globex: Tenant, database: LiveDatabase
):
    with owner_transaction(database.admin) as connection:
        mark_size(connection, "acme")
        connection.exec_driver_sql("update size_marks set marked_on = marked_on - 3")
    acme.store({"more.md": "# More\n\nAnother page about couriers and their bells."})
    with owner_transaction(database.admin) as connection:
        mark_size(connection, "acme")
        mark_size(connection, "acme")  # the same day again replaces it
    shown = acme.get("/v1/stats").json()
    before, now = shown["series"]["sizes"]
    assert (before["nodes"], now["nodes"]) == (4, 6)
    assert now["bytes"] > before["bytes"] > 0
    growth = shown["storage"]["growth"]
    assert (growth["since"], growth["nodes"]) == (before["marked_on"], 2)
    assert shown["storage"]["bytes"] == now["bytes"]
    assert globex.get("/v1/stats").json()["series"]["sizes"] == []


def test_stats_are_for_admins_and_within_bounds(
    acme: Tenant, globex: Tenant, make_key: MakeKey, client: TestClient
):
    searcher = Tenant("acme", make_key("acme", scopes=["search"]), client)
    assert searcher.get("/v1/stats").status_code == 403
    assert client.get("/v1/stats").status_code == 401
    assert acme.get("/v1/stats", headers={"X-Tenant": "globex"}).status_code == 403
    for hours in ("0", "2161", "many"):
        assert acme.get(f"/v1/stats?hours={hours}").json()["code"] == "invalid_input"


def test_the_client_reads_stats(database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey):
    make_tenant("acme")
    with run_app(app_for(database)) as url:
        with Client(url, make_key("acme")) as client:
            assert client.read_stats(hours=2).traffic.searches == 0
        with Client(url, make_key("acme", scopes=["search"])) as client, pytest.raises(Forbidden):
            client.read_stats()


# --- /metrics ------------------------------------------------------------------------------------


def read_names(text: str) -> set[str]:
    return {
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    } | {f"{family.name}" for family in text_string_to_metric_families(text)}


def test_metrics_are_for_whoever_has_the_token(acme: Tenant):
    client = acme.client
    for given in ("", "Bearer wrong", f"Basic {METRICS_TOKEN}"):
        refused = client.get("/metrics", headers={"Authorization": given})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "acme" not in refused.text
    assert acme.get("/metrics").status_code == 403
    right = client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
    assert right.status_code == 200


def test_without_a_token_metrics_are_for_this_machine_alone(database: LiveDatabase):
    app = app_for(database, contextforge_metrics_token=None)
    for peer, host, headers, status in (
        ("127.0.0.1", "localhost", {}, 200),
        ("::1", "127.0.0.1", {}, 200),
        ("10.0.0.9", "localhost", {}, 403),
        ("127.0.0.1", "evil.example", {}, 403),
        ("127.0.0.1", "localhost", {"X-Forwarded-For": "10.0.0.9"}, 403),
    ):
        with TestClient(app, base_url=f"http://{host}", client=(peer, 5000)) as client:
            assert client.get("/metrics", headers=headers).status_code == status


def test_gauges_of_a_tenant_appear_once_it_is_searched(acme: Tenant, globex: Tenant):
    client = acme.client
    acme.search()
    assert read_metric(client, "contextforge_searchable_nodes", tenant="acme") == 2
    assert read_metric(client, "contextforge_segments", tenant="acme") >= 1
    assert read_metric(client, "contextforge_postings", tenant="acme") > 10
    assert read_metric(client, "contextforge_dead_postings_share", tenant="acme") == 0
    assert read_metric(client, "contextforge_ann_index_bytes") > 0
    assert read_metric(client, "contextforge_searchable_nodes", tenant="globex") == 0


def test_searches_through_the_index_are_audited_behind_the_request(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    with TestClient(app_for(database, contextforge_audit_share=1)) as client:
        acme = Tenant(make_tenant("acme"), make_key("acme"), client)
        globex = Tenant(make_tenant("globex"), make_key("globex"), client)
        page = "# Page {}\n\nA courier rings the bell of house {} and waits at the door."
        acme.store({f"{n}.md": page.format(n, n) for n in range(40)})
        globex.store({"one.md": page.format(1, 1)})
        with owner_transaction(database.admin) as connection:
            tune_ann_index(connection, exact_limit=10)
            refresh_ann(connection, "acme")
        for number in range(20):
            acme.search(f"courier {number}")
            globex.search(f"courier {number}")
        flush(client)
        assert read_metric(client, "contextforge_recall", tenant="acme") == 1
        assert read_metric(client, "contextforge_recall_below_limit", tenant="acme") == 0
        assert acme.get("/v1/stats").json()["recall"]["audits"] == 20
        assert globex.get("/v1/stats").json()["recall"] == {
            "hour": None,
            "audits": 0,
            "recall": None,
        }


def test_every_metric_of_the_dashboard_and_the_alerts_is_exported(acme: Tenant):
    acme.search()
    services = acme.client.app.state.services  # type: ignore[attr-defined]
    services.metrics.note_recall("acme", 1.0, False)
    acme.post("/v1/search", {})
    text = acme.client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).text
    exported = read_names(text)
    dashboard = (ROOT / "monitoring" / "grafana-dashboard.json").read_text()
    alerts = (ROOT / "monitoring" / "alerts.yml").read_text()
    assert json.loads(dashboard)["panels"]
    expressions = [
        target["expr"]
        for panel in json.loads(dashboard)["panels"]
        for target in panel.get("targets", ())
    ]
    named = set(re.findall(r"\bcontextforge_\w+", "\n".join([*expressions, alerts])))
    assert named
    assert named <= exported
