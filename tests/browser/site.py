"""The real application on a real database with the demo, served to a real browser."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn

from service.api.app import create_app
from service.db.database import Database
from service.db.egress import set_egress_policy
from service.db.engine import owner_transaction
from service.db.registry import create_key, create_tenant
from service.embedding import Embedder
from service.ingestion.demo import DEMO_TENANT, load_demo, read_demo
from service.ingestion.upsert import embed_and_upsert
from service.settings import Settings
from service.types import NodeDraft
from tests.live_database import LiveDatabase

MODEL_DIM = 384
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def find_browser() -> str | None:
    """Return the path of an installed Chromium or Chrome."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def fill_demo(database: LiveDatabase, embedder: Embedder) -> None:
    """Load what ships with the project as tenant demo."""
    with owner_transaction(database.admin) as connection:
        create_tenant(connection, DEMO_TENANT, display_name="Demo")
    report = load_demo(read_demo(), database.engine, embedder=embedder)
    assert not report.rejected


def add_tenant(
    database: LiveDatabase, name: str, *, texts: Mapping[str, str], embedder: Embedder
) -> str:
    """Create a tenant with one node a text, and return a key for it."""
    with owner_transaction(database.admin) as connection:
        create_tenant(connection, name, display_name=name)
        key = create_key(connection, name, tenant_ids=[name], scopes=["search"])
    nodes = [
        NodeDraft(title, "note", title=title, content=content) for title, content in texts.items()
    ]
    embed_and_upsert(database.engine, name, nodes=nodes, embedder=embedder, dataset_name="default")
    return key.text


def allow_claude(database: LiveDatabase, tenant: str) -> None:
    """Let everything of a tenant be sent to Claude."""
    with owner_transaction(database.admin) as connection:
        set_egress_policy(connection, tenant, policy="all")


@contextmanager
def serve(
    database: LiveDatabase, embedder: Embedder, *, demo: bool, **settings: Any
) -> Iterator[str]:
    """Serve the application on a free port until the block ends, and yield its address."""
    url = database.service_url
    chosen = Settings.model_validate({"database_url": url, "embedding_dim": MODEL_DIM, **settings})
    app = create_app(chosen, database=Database(database.engine, url), embedder=embedder, demo=demo)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the service did not start"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
