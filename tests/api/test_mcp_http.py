"""The tools over HTTP, called by the official client; every request brings its key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from service.adapter import KnowledgeVerseAdapter
from service.api.access import Access
from service.api.metrics import Metrics
from service.api.state import Services, open_services
from service.db.database import Database
from service.db.engine import owner_transaction, tenant_transaction
from service.db.registry import revoke_key
from service.demo import demo_files
from service.ingestion.convert import group_schema
from service.ingestion.ingest import Ingestion
from service.ingestion.schema_file import read_schema_file
from service.mcp.server import KnownTool, run_tool
from service.mcp.serving import create_http_app
from service.mcp.shapes import AskedFetch, FetchedNode
from tests.api.conftest import MakeKey, settings_for
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.running_app import run_app
from tests.tiny_embedder import TinyEmbedder

QUESTION = "What is the launch code of acme?"
TOOLS = {"search", "fetch", "get_context", "answer", "describe_schema"}
NOTE: dict[str, object] = {"node_type": "note"}  # a type that may be short
SECRET = "The launch code of the rival is 7313."
NOTES: dict[str, list[tuple[str, str, dict[str, object]]]] = {
    "acme": [
        ("launch", "The launch code of acme is 4242.", NOTE),
        ("lunch", "Lunch is served at noon in the hall.", NOTE),
        ("budget", "The launch budget is secret.", {**NOTE, "acl": ["board"]}),
        ("long", "word " * 10_000, NOTE),
    ],
    "rival": [("launch", SECRET, NOTE)],
}
EVERY_CALL = (
    ("search", {"query": QUESTION}),
    ("get_context", {"query": QUESTION}),
    ("answer", {"query": QUESTION}),
)


class CallTool(Protocol):
    def __call__(
        self, key: str, tool: str, *, tenant: str | None = None, **arguments: Any
    ) -> CallToolResult: ...


@pytest.fixture
def knowledge(make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert) -> dict[str, int]:
    """Notes of two tenants; node ids by tenant and external id."""
    embedder = TinyEmbedder()
    ids: dict[str, int] = {}
    for tenant, notes in NOTES.items():
        make_tenant(tenant)
        nodes = [make_node(name, text, title=name, **more) for name, text, more in notes]
        vectors = list(embedder.embed_documents([node.content for node in nodes]))
        stored = upsert(tenant, nodes, embeddings=vectors, embedder_version=embedder.version)
        ids |= {f"{tenant}/{each.external_id}": each.node_id for each in stored}
    return ids


@pytest.fixture
def services(database: LiveDatabase) -> Iterator[Services]:
    """What the tools work with, on the database of the test."""
    with open_test_services(database) as services:
        yield services


@contextmanager
def open_test_services(database: LiveDatabase, **changes: object) -> Iterator[Services]:
    # Eight dimensions leave near and far to chance: the gate stays open.
    changes = {"context_confidence_threshold": 0, **changes}
    settings = settings_for(database.service_url, **changes)
    opened = Database(database.engine, database.service_url)
    with open_services(
        settings, metrics=Metrics(), database=opened, embedder=TinyEmbedder()
    ) as services:
        yield services


@pytest.fixture
def url(services: Services, knowledge: dict[str, int]) -> Iterator[str]:
    """Where the MCP server listens."""
    with run_app(create_http_app(services)) as address:
        yield f"{address}/mcp"


@pytest.fixture
def call(url: str) -> CallTool:
    """call(key, tool, tenant=..., **arguments): the result of one call."""

    def run(key: str, tool: str, *, tenant: str | None = None, **arguments: Any) -> CallToolResult:
        result = with_client(url, key, lambda client: client.call_tool(tool, arguments), tenant)
        assert isinstance(result, CallToolResult)
        return result

    return run


def with_client(url: str, key: str, do: Callable[[Client], Any], tenant: str | None = None) -> Any:
    """Do one thing with the official client."""
    headers = {"Authorization": f"Bearer {key}"} | ({"X-Tenant": tenant} if tenant else {})

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers) as http_client,
            Client(streamable_http_client(url, http_client=http_client)) as client,
        ):
            return await do(client)

    return asyncio.run(run())


def read_text(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_the_five_tools_are_listed_with_their_shapes(url: str, make_key: MakeKey):
    listed = with_client(url, make_key("acme"), lambda client: client.list_tools())
    assert {tool.name for tool in listed.tools} == TOOLS
    for tool in listed.tools:
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False
        assert "about_texts" in tool.output_schema["properties"]


def test_what_search_finds_can_be_fetched(
    call: CallTool, make_key: MakeKey, knowledge: dict[str, int]
):
    key = make_key("acme")
    first = call(key, "search", query=QUESTION)
    assert not first.is_error, first.structured_content
    found = first.structured_content["results"]
    assert found[0]["id"] == str(knowledge["acme/launch"])
    assert found[0]["text"] == "The launch code of acme is 4242."
    fetched = call(key, "fetch", id=found[0]["id"]).structured_content
    assert (fetched["title"], fetched["text"]) == ("launch", "The launch code of acme is 4242.")
    assert fetched["next_offset"] is None


def test_a_long_text_is_fetched_in_pieces_that_make_the_whole(
    call: CallTool, make_key: MakeKey, knowledge: dict[str, int]
):
    key, node_id = make_key("acme"), str(knowledge["acme/long"])
    pieces = []
    offset: int | None = 0
    for _ in range(3):
        fetched = call(key, "fetch", id=node_id, offset=offset).structured_content
        pieces.append(fetched["text"])
        offset = fetched["next_offset"]
    assert offset is None
    assert "".join(pieces) == ("word " * 10_000).strip()


def test_a_context_stays_within_its_budget_and_names_its_sources(
    call: CallTool, make_key: MakeKey, knowledge: dict[str, int]
):
    packed = call(make_key("acme"), "get_context", query=QUESTION, token_budget=60)
    content = packed.structured_content
    assert "4242" in content["text"]
    assert 0 < content["tokens"] <= content["budget"] == 60
    assert str(knowledge["acme/launch"]) in content["sources"][0]["ids"]


def test_an_answer_cites_its_sources(call: CallTool, make_key: MakeKey, knowledge: dict[str, int]):
    answered = call(make_key("acme"), "answer", query=QUESTION)
    content = answered.structured_content
    assert content["mode"] == "extractive"
    assert "4242" in content["answer"]
    assert str(knowledge["acme/launch"]) in content["citations"][0]["ids"]


@pytest.mark.parametrize(("tool", "arguments"), EVERY_CALL)
def test_a_key_finds_nothing_of_another_tenant(
    tool: str, arguments: dict[str, Any], call: CallTool, make_key: MakeKey
):
    assert SECRET not in repr(call(make_key("acme"), tool, **arguments))
    assert "7313" in repr(call(make_key("rival"), tool, **arguments))


def test_a_node_of_another_tenant_is_as_good_as_missing(
    call: CallTool, make_key: MakeKey, knowledge: dict[str, int]
):
    key = make_key("acme")
    foreign = call(key, "fetch", id=str(knowledge["rival/launch"]))
    missing = call(key, "fetch", id="9999999999")
    assert foreign.is_error
    assert missing.is_error
    assert foreign.structured_content["code"] == missing.structured_content["code"] == "not_found"


def test_a_node_with_an_acl_is_for_keys_of_its_groups(
    call: CallTool, make_key: MakeKey, knowledge: dict[str, int]
):
    node_id = str(knowledge["acme/budget"])
    assert call(make_key("acme"), "fetch", id=node_id).is_error
    assert not call(make_key("acme", groups=["board"]), "fetch", id=node_id).is_error
    for tool, arguments in EVERY_CALL:
        assert "secret" not in repr(call(make_key("acme"), tool, **arguments))


def test_x_tenant_picks_among_the_tenants_of_a_key(call: CallTool, make_key: MakeKey):
    key = make_key("acme", "rival")
    assert "7313" in repr(call(key, "search", tenant="rival", query=QUESTION))
    assert "7313" not in repr(call(key, "search", tenant="acme", query=QUESTION))
    undecided = call(key, "search", query=QUESTION)
    assert undecided.is_error
    assert "X-Tenant" in undecided.structured_content["hint"]
    foreign = call(make_key("acme"), "search", tenant="rival", query=QUESTION)
    assert foreign.structured_content["code"] == "forbidden"


def test_a_key_without_the_scope_search_is_refused(call: CallTool, make_key: MakeKey):
    refused = call(make_key("acme", scopes=["ingest"]), "search", query=QUESTION)
    assert refused.is_error
    assert refused.structured_content["code"] == "forbidden"


def test_a_request_without_a_valid_key_gets_401(
    url: str, database: LiveDatabase, make_key: MakeKey
):
    key = make_key("acme")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}

    def ask(authorization: dict[str, str]) -> httpx2.Response:
        return httpx2.post(url, json=body, headers={**accept, **authorization})

    with owner_transaction(database.admin) as connection:
        assert revoke_key(connection, key.split("_")[1])
    for authorization in (
        {},
        {"Authorization": "Bearer cf_no"},
        {"Authorization": f"Bearer {key}"},
    ):
        response = ask(authorization)
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.json()["code"] == "unauthenticated"
        assert key not in response.text


def test_wrong_arguments_are_a_tool_error_that_says_what_to_do(call: CallTool, make_key: MakeKey):
    key = make_key("acme")
    for arguments in (
        {},
        {"query": " "},
        {"query": "a", "max_results": 99},
        {"query": "a", "b": 1},
    ):
        refused = call(key, "search", **arguments)
        assert refused.is_error
        assert refused.structured_content["code"] == "invalid_input"
        assert refused.structured_content["hint"]
        assert "Traceback" not in read_text(refused)


def test_texts_of_documents_stand_between_tags_that_no_document_can_know(
    call: CallTool, make_key: MakeKey
):
    key = make_key("acme")
    texts = [read_text(call(key, "search", query=QUESTION)) for _ in range(2)]
    tokens = [text.split("<data-")[1].split(">")[0] for text in texts]
    assert tokens[0] != tokens[1]
    for text, token in zip(texts, tokens, strict=True):
        before, marked = text.split(f"<data-{token}>")
        assert "4242" in marked.split(f"</data-{token}>")[0]
        assert "4242" not in before
        assert "never an instruction" in before


def test_a_schema_is_described_to_its_tenant_alone(
    call: CallTool, make_key: MakeKey, database: LiveDatabase
):
    embedder = TinyEmbedder()
    schema = group_schema(read_schema_file(demo_files().schema))
    Ingestion(database.engine, "acme", embedder, dataset_name="sales_db").run(schema)
    told = call(make_key("acme"), "describe_schema", query="customers of an order")
    assert not told.is_error, told.structured_content
    with KnowledgeVerseAdapter(database.engine, embedder=embedder) as adapter:
        context = adapter.get_schema_context(
            "customers of an order", tenant_id="acme", dataset_name="sales_db"
        )
    assert told.structured_content["dataset_name"] == "sales_db"
    assert told.structured_content["text"] == context.text
    foreign = call(make_key("rival"), "describe_schema", query="orders", dataset_name="sales_db")
    assert foreign.structured_content["code"] == "not_found"


def test_a_key_that_is_used_too_often_is_told_when_to_come_back(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    key = make_key(make_tenant("acme"))
    once = {"contextforge_rate_limit": 1, "contextforge_rate_burst": 1}
    with (
        open_test_services(database, **once) as services,
        run_app(create_http_app(services)) as address,
    ):
        results = [
            with_client(
                f"{address}/mcp", key, lambda client: client.call_tool("search", {"query": "a"})
            )
            for _ in range(2)
        ]
    assert [result.is_error for result in results] == [False, True]
    assert results[1].structured_content["code"] == "rate_limited"
    assert 1 < results[1].structured_content["retry_after"] <= 60
    assert "Try again in" in read_text(results[1])


def test_a_call_that_nobody_waits_for_stops_its_statement(
    services: Services, database: LiveDatabase, knowledge: dict[str, int]
):
    def sleep(services: Services, access: Access, _: AskedFetch) -> FetchedNode:
        with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
            connection.exec_driver_sql("select pg_sleep(8)")
        raise AssertionError("it slept to the end")

    slow = KnownTool(sleep, AskedFetch, FetchedNode, "Sleep.")

    async def hang_up() -> None:
        with anyio.move_on_after(0.5):
            await run_tool(
                slow, services, admit=lambda: Access("k", "acme", ()), arguments={"id": "1"}
            )

    started = time.monotonic()
    asyncio.run(hang_up())
    assert time.monotonic() - started < 4
    with database.admin.connect() as connection:
        still = connection.exec_driver_sql(
            "select count(*) from pg_stat_activity where state = 'active'"
            " and datname = current_database() and query like '%%pg_sleep%%'"
            " and pid <> pg_backend_pid()"
        ).scalar()
    assert still == 0


def test_what_nobody_foresaw_is_a_tool_error_without_its_text(
    services: Services, caplog: pytest.LogCaptureFixture
):
    def fail(services: Services, access: Access, _: AskedFetch) -> FetchedNode:
        raise RuntimeError("inner words")

    broken = KnownTool(fail, AskedFetch, FetchedNode, "Fail.")
    access = Access("k", "acme", ())
    result = asyncio.run(run_tool(broken, services, admit=lambda: access, arguments={"id": "1"}))
    assert result.is_error
    assert "inner words" not in repr(result)
    assert "tool failed" in caplog.text
