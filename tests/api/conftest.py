"""Fixtures for the tests of the API: an application, keys, and knowledge of two tenants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from service.api.app import create_app
from service.db.database import Database
from service.db.engine import owner_transaction
from service.db.registry import create_key
from service.settings import Settings
from tests.conftest import MakeTenant
from tests.live_database import SMALL_DIM, LiveDatabase
from tests.tiny_embedder import TinyEmbedder

METRICS_TOKEN = "figures"
SCOPES = ("search", "ingest", "admin")
DOCUMENTS = {
    "parcels.md": "# Parcels\n\nA parcel is delivered by the courier within two working days of "
    "the order, and the customer is told the hour of the delivery by message on the same morning "
    "so that somebody can be at home to sign for it when the courier rings the bell.",
    "returns.md": "# Returns\n\nA customer may return a parcel within thirty days of its delivery "
    "and is paid back in full once the warehouse has looked at the contents of the parcel, which "
    "takes three days or less in most cases. See [parcels](parcels.md).",
}


class MakeKey(Protocol):
    def __call__(
        self,
        *tenants: str,
        scopes: Sequence[str] = SCOPES,
        groups: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> str: ...


@dataclass(frozen=True)
class Tenant:
    """A tenant as a caller over HTTP: every call carries its key."""

    name: str
    key: str
    client: TestClient

    def call(self, method: str, path: str, **options: Any) -> Response:
        headers = {"Authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        return cast(Response, self.client.request(method, path, headers=headers, **options))

    def post(self, path: str, body: object, **options: Any) -> Response:
        return self.call("POST", path, json=body, **options)

    def get(self, path: str, **options: Any) -> Response:
        return self.call("GET", path, **options)

    def store(self, documents: dict[str, str], dataset: str = "default") -> dict[str, Any]:
        body = {"documents": [{"name": n, "content": text} for n, text in documents.items()]}
        response = self.post(f"/v1/documents?dataset_name={dataset}", body)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def search(self, query: str = "When is a parcel delivered?", **more: object) -> dict[str, Any]:
        response = self.post("/v1/search", {"query": query, **more})
        assert response.status_code == 200, response.text
        return dict(response.json())


def settings_for(url: str, **changes: object) -> Settings:
    given = {
        "database_url": url,
        "embedding_dim": SMALL_DIM,
        "contextforge_metrics_token": METRICS_TOKEN,
    }
    return Settings.model_validate({**given, **changes})


def app_for(database: LiveDatabase, *, demo: bool = False, **changes: object) -> FastAPI:
    """An application on the test's database, with the small embedder."""
    return create_app(
        settings_for(database.service_url, **changes),
        database=Database(database.engine, database.service_url),
        embedder=TinyEmbedder(),
        demo=demo,
    )


@pytest.fixture
def app(database: LiveDatabase) -> FastAPI:
    return app_for(database)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def make_key(database: LiveDatabase) -> MakeKey:
    """make_key(tenants..., scopes=..., groups=...): the text of a new API key."""

    def create(
        *tenants: str,
        scopes: Sequence[str] = SCOPES,
        groups: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> str:
        with owner_transaction(database.admin) as connection:
            made = create_key(
                connection,
                "test",
                tenant_ids=tenants,
                scopes=scopes,
                acl_groups=groups,
                expires_at=expires_at,
            )
        return made.text

    return create


@pytest.fixture
def acme(client: TestClient, make_tenant: MakeTenant, make_key: MakeKey) -> Tenant:
    """A tenant with two documents."""
    tenant = Tenant(make_tenant("acme"), make_key("acme"), client)
    tenant.store(DOCUMENTS)
    return tenant


@pytest.fixture
def globex(client: TestClient, make_tenant: MakeTenant, make_key: MakeKey) -> Tenant:
    """Another tenant, with the same documents under the same names."""
    tenant = Tenant(make_tenant("globex"), make_key("globex"), client)
    tenant.store(DOCUMENTS)
    return tenant
