"""The command `contextforge mcp` as a process of its own: over stdin and stdout, and over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from service.cli.mcp import mcp
from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_nodes
from service.db.registry import create_key, create_tenant, revoke_key
from service.embedding import DEFAULT_MODEL, load_embedder
from service.errors import InvalidInput
from service.types import NodeDraft
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase

CONTEXTFORGE = str(Path(sys.executable).with_name("contextforge"))
DIMENSION = 384
QUESTION = "How is the pump switched on?"
NOTES = {
    "acme": "The pump of acme is switched on with the green lever beside the door.",
    "rival": "The pump of the rival is switched on with the hidden button under the desk.",
}
T = TypeVar("T")


@pytest.fixture
def database(make_database: MakeDatabase) -> LiveDatabase:
    """A database with a note of each of two tenants, embedded by the shipped model."""
    made = make_database(embedding_dim=DIMENSION)
    embedder = load_embedder(DEFAULT_MODEL)
    for tenant, text in NOTES.items():
        with owner_transaction(made.admin) as connection:
            create_tenant(connection, tenant)
        with tenant_transaction(made.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[NodeDraft("pump", "note", title="Pump", content=text)],
                embeddings=list(embedder.embed_documents([text])),
                embedder_version=embedder.version,
            )
    return made


@pytest.fixture
def key(database: LiveDatabase) -> str:
    """A key that opens both tenants."""
    with owner_transaction(database.admin) as connection:
        made = create_key(connection, "host", tenant_ids=list(NOTES), scopes=["search"])
    return made.text


@pytest.fixture
def environment(database: LiveDatabase, key: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database.service_url,
        "EMBEDDING_DIM": str(DIMENSION),
        "CONTEXTFORGE_API_KEY": key,
    }


def with_host(
    environment: dict[str, str],
    log: Path,
    do: Callable[[Client], Awaitable[T]],
    *arguments: str,
) -> T:
    """Run the command as a host does, and do something with the official client."""
    parameters = StdioServerParameters(
        command=CONTEXTFORGE, args=["mcp", *arguments], env=environment, cwd=log.parent
    )

    async def run() -> T:
        with log.open("w") as errors:
            async with Client(stdio_client(parameters, errors)) as client:
                return await do(client)

    return asyncio.run(run())


@pytest.mark.slow
def test_a_host_searches_fetches_and_asks_under_a_key(
    environment: dict[str, str], key: str, tmp_path: Path, database: LiveDatabase
):
    async def work(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [
            *("search", "fetch", "get_context", "answer", "describe_schema")
        ]
        found = (await client.call_tool("search", {"query": QUESTION})).structured_content
        assert [each["text"] for each in found["results"]] == [NOTES["acme"]]
        node_id = found["results"][0]["id"]
        fetched = (await client.call_tool("fetch", {"id": node_id})).structured_content
        assert fetched["text"] == NOTES["acme"]
        answered = (await client.call_tool("answer", {"query": QUESTION})).structured_content
        assert "green lever" in answered["answer"]
        schema = await client.call_tool("describe_schema", {"query": "orders"})
        assert schema.is_error
        assert schema.structured_content["code"] == "not_found"

        with owner_transaction(database.admin) as connection:
            assert revoke_key(connection, key.split("_")[1])
        refused = await client.call_tool("search", {"query": QUESTION})
        assert refused.is_error
        assert refused.structured_content["code"] == "unauthenticated"

    log = tmp_path / "log"
    with_host(environment, log, work, "--tenant", "acme")
    assert key not in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_the_key_may_stand_in_a_file(environment: dict[str, str], tmp_path: Path):
    key_file = tmp_path / "key"
    key_file.write_text(environment.pop("CONTEXTFORGE_API_KEY") + "\n")

    async def search(client: Client) -> str:
        return repr(await client.call_tool("search", {"query": QUESTION}))

    options = ("--key-file", str(key_file), "--tenant", "rival")
    found = with_host(environment, tmp_path / "log", search, *options)
    assert "hidden button" in found
    assert "green lever" not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "arguments", "code", "said"),
    [
        ({"CONTEXTFORGE_API_KEY": ""}, (), 2, "needs an API key"),
        ({"CONTEXTFORGE_API_KEY": "cf_wrong"}, (), 1, "unknown, expired or revoked"),
        ({}, (), 1, "Name one in --tenant: acme, rival."),
        ({}, ("--tenant", "other"), 1, "does not open the tenant"),
        ({}, ("--key-file", "/nonexistent"), 1, "cannot be read"),
        ({}, ("--http", "--tenant", "acme"), 2, "every request brings its own key"),
    ],
)
def test_a_key_that_opens_nothing_is_refused_at_once_and_not_shown(
    change: dict[str, str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
    *,
    environment: dict[str, str],
    key: str,
    tmp_path: Path,
):
    done = subprocess.run(
        [CONTEXTFORGE, "mcp", *arguments],
        env={"PATH": os.environ["PATH"], "COLUMNS": "200", **environment, **change},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    assert said in done.stderr
    assert done.stdout == ""
    assert key not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_command_serves_hosts_over_http_until_it_is_stopped(
    environment: dict[str, str], tmp_path: Path
):
    key = environment.pop("CONTEXTFORGE_API_KEY")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [CONTEXTFORGE, "mcp", "--http", "--port", str(port)],
        env={"PATH": os.environ["PATH"], **environment},
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )

    async def search() -> str:
        headers = {"Authorization": f"Bearer {key}", "X-Tenant": "rival"}
        async with (
            httpx2.AsyncClient(headers=headers) as http_client,
            Client(
                streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http_client)
            ) as client,
        ):
            return repr(await client.call_tool("search", {"query": QUESTION}))

    try:
        wait_for_port(port)
        found = asyncio.run(search())
    finally:
        process.terminate()
        _, log = process.communicate(timeout=20)
    assert "hidden button" in found
    assert "green lever" not in found
    assert key not in log
    assert "Traceback" not in log


def wait_for_port(port: int, *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, "nothing listens"
            time.sleep(0.1)
        else:
            return


def test_without_its_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    with pytest.raises(InvalidInput) as caught:
        mcp()
    assert caught.value.hint == "Install it with: pip install 'contextforge[mcp]'"
