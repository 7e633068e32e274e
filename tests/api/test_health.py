"""Is the service alive, is it ready, and what an error looks like over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.db.database import Database
from service.db.engine import open_engine
from service.errors import Conflict, NotFound, UnsafeLogin
from service.settings import Settings
from tests.live_database import SMALL_DIM, LiveDatabase

PROBLEM = "application/problem+json"


def settings_for(url: str) -> Settings:
    return Settings.model_validate({"database_url": url, "embedding_dim": SMALL_DIM})


@pytest.fixture
def app(database: LiveDatabase) -> FastAPI:
    return create_app(settings_for(database.service_url))


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture
def stranded() -> Iterator[TestClient]:
    """A client of a service whose database is gone."""
    url = "postgresql://contextforge_service@127.0.0.1:1/gone"
    database = Database(open_engine(url), url)
    with TestClient(create_app(settings_for(url), database=database)) as client:
        yield client


def test_a_service_with_its_database_is_alive_and_ready(client: TestClient):
    for path in ("/healthz", "/readyz"):
        response = client.get(path)
        assert response.status_code == 200
        assert response.json() == {"status": "ok"}


def test_a_service_without_its_database_is_alive_but_not_ready(stranded: TestClient):
    assert stranded.get("/healthz").status_code == 200
    response = stranded.get("/readyz")
    assert response.status_code == 503
    assert response.headers["content-type"] == PROBLEM
    assert response.json()["type"] == "urn:contextforge:error:database_unavailable"
    assert response.json()["status"] == 503


def test_a_database_that_is_not_at_the_head_is_not_ready(
    client: TestClient, database: LiveDatabase
):
    with database.admin.begin() as connection:
        connection.exec_driver_sql("update contextforge.schema_version set version_num = '0001'")
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.headers["content-type"] == PROBLEM
    assert response.json()["code"] == "database_unsuitable"
    assert "contextforge migrate" in response.json()["hint"]


def test_a_service_error_becomes_a_problem_with_its_status(app: FastAPI, client: TestClient):
    @app.get("/missing")
    def find_missing() -> None:
        raise NotFound('There is no node "a".', hint="Ask for another.")

    @app.get("/conflict")
    def find_conflict() -> None:
        raise Conflict("Two say the same.")

    response = client.get("/missing")
    assert response.status_code == 404
    assert response.headers["content-type"] == PROBLEM
    problem = response.json()
    assert problem.pop("instance").startswith("urn:contextforge:request:")
    assert problem == {
        "type": "urn:contextforge:error:not_found",
        "title": "Not found",
        "status": 404,
        "detail": 'There is no node "a".',
        "code": "not_found",
        "hint": "Ask for another.",
    }
    response = client.get("/conflict")
    assert response.status_code == 409
    assert "hint" not in response.json()


def test_the_application_does_not_start_as_a_superuser(database: LiveDatabase):
    with (
        pytest.raises(UnsafeLogin),
        TestClient(create_app(settings_for(database.admin_url))),
    ):
        pass
