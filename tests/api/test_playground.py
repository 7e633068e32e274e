"""The files of the playground, and what it is told when it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.api.conftest import Tenant, app_for
from tests.live_database import LiveDatabase

PAGES = Path(__file__).resolve().parents[2] / "service" / "api" / "pages"
LOCAL = ("127.0.0.1", 50000)


@pytest.fixture
def demo(database: LiveDatabase) -> Iterator[TestClient]:
    app = app_for(database, demo=True)
    with TestClient(app, base_url="http://127.0.0.1", client=LOCAL) as client:
        yield client


def test_the_page_and_all_it_refers_to_are_served(client: TestClient):
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-cache"
    named = re.findall(r'(?:href|src)="(/playground/[^"]+)"', page.text)
    assert len(named) > 5
    for path in named:
        assert client.get(path).status_code == 200, path


def test_every_module_that_is_imported_is_served_as_a_script(client: TestClient):
    for script in PAGES.glob("*.js"):
        response = client.get(f"/playground/{script.name}")
        assert response.headers["content-type"].startswith("text/javascript")
        assert response.headers["x-content-type-options"] == "nosniff"
        for imported in re.findall(r'from "\./([^"]+)"', response.text):
            assert (PAGES / imported).is_file(), f"{script.name} imports {imported}"


def test_no_file_of_the_page_names_another_host_or_makes_markup_of_text():
    for file in PAGES.iterdir():
        text = file.read_text()
        hosts = set(re.findall(r"https?://([^/\"'\s]+)", text))
        assert hosts <= {"www.w3.org"}, file.name  # the name of SVG, which nobody asks
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
        assert not re.search(r"localStorage|sessionStorage|document\.cookie", text)


@pytest.mark.parametrize("name", ["missing.js", "..%2Fapp.py", "__init__.py", "index.htm"])
def test_nothing_else_is_served(client: TestClient, name: str):
    response = client.get(f"/playground/{name}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


def test_without_the_demo_the_page_is_told_to_ask_for_a_key(client: TestClient):
    assert client.get("/playground/start.json").json() == {"demo": False, "examples": []}


def test_the_demo_starts_with_examples_for_this_machine_only(demo: TestClient):
    start = demo.get("/playground/start.json").json()
    assert start["demo"] is True
    assert len(start["examples"]) >= 3
    proxied = demo.get("/playground/start.json", headers={"X-Forwarded-For": "203.0.113.9"}).json()
    assert proxied == {"demo": False, "examples": []}


def test_an_explained_hit_has_its_pagerank_and_a_plain_one_only_where_it_counted(acme: Tenant):
    explained = acme.search(explain=True)["hits"]
    assert all(hit["scores"]["graph"] is not None for hit in explained)
    assert all(hit["scores"]["graph"] is None for hit in acme.search()["hits"])
    ranked = acme.search(options={"graph_prior_weight": 0.3})["hits"]
    assert all(hit["scores"]["graph"] is not None for hit in ranked)


def test_an_answer_stays_in_the_budget_it_is_given(acme: Tenant):
    body = {"query": "When is a parcel delivered?", "options": {"confidence_threshold": 0}}
    for path in ("/v1/context", "/v1/answer"):
        assert acme.post(path, {**body, "token_budget": 0}).status_code == 422
    tight = acme.post("/v1/answer", {**body, "token_budget": 60, "explain": True}).json()
    wide = acme.post("/v1/answer", {**body, "token_budget": 4000, "explain": True}).json()
    outcomes = [[each["outcome"] for each in one["trace"]["candidates"]] for one in (tight, wide)]
    assert "dropped" in outcomes[0]
    assert "dropped" not in outcomes[1]
