"""The client against the real service on a loopback port, for threads and for event loops."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.client import (
    AsyncClient,
    CitationEvent,
    Client,
    GivenFilters,
    GivenLink,
    GivenNode,
    GivenOptions,
    MessageEvent,
    Retries,
    SearchResultsEvent,
    ShownAnswer,
)
from service.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    RateLimited,
    ServiceError,
    ServiceUnreachable,
    Unauthenticated,
)
from tests.api.client_driver import DrivenClient
from tests.api.conftest import DOCUMENTS, MakeKey, app_for
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.running_app import run_app

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-client.md"
QUERY = "When is a parcel delivered by the courier?"
NO_RETRIES = Retries(most=0)
PLENTY = GivenOptions(confidence_threshold=0)


class Connect(Protocol):
    def __call__(self, url: str, key: str | None = None, **options: Any) -> Any: ...


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """connect(url, key, ...): either client, driven; closed at the end."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def open_client(url: str, key: str | None = None, **options: Any) -> Any:
            client = DrivenClient(request.param(url, key, **options), runner)
            stack.callback(client.close)
            return client

        yield open_client


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with run_app(app) as address:
        yield address


@pytest.fixture
def acme(url: str, connect: Connect, make_tenant: MakeTenant, make_key: MakeKey) -> Any:
    """A client of a tenant with two documents."""
    client = connect(url, make_key(make_tenant("acme")))
    client.store_documents(DOCUMENTS)
    return client


@pytest.fixture
def globex(url: str, connect: Connect, make_tenant: MakeTenant, make_key: MakeKey) -> Any:
    """A client of another tenant, which has nothing."""
    return connect(url, make_key(make_tenant("globex")))


# --- what it does ---------------------------------------------------------------------------------


def test_stored_documents_are_found_packed_and_answered_from(acme: Any):
    found = acme.search(QUERY, max_results=5, explain=True)
    assert found.hits[0].node.title == "Parcels"
    assert found.trace is not None
    node = acme.read_node(found.hits[0].node.node_id)
    assert node == found.hits[0].node
    packed = acme.build_context(QUERY, token_budget=200, options=PLENTY)
    assert 0 < packed.tokens <= packed.budget == 200
    answered = acme.answer(QUERY, options=PLENTY)
    assert answered.mode == "extractive"
    assert "courier" in answered.answer


def test_an_answer_streams_as_typed_events_with_the_whole_at_the_end(acme: Any):
    events = acme.stream_answer(QUERY, options=PLENTY)
    assert isinstance(events[0], SearchResultsEvent)
    assert events[0].sources
    assert isinstance(events[-1], ShownAnswer)
    text = "".join(each.text for each in events if isinstance(each, MessageEvent))
    assert text == events[-1].answer
    cited = [each.citation for each in events if isinstance(each, CitationEvent)]
    assert cited == events[-1].citations


def test_a_stream_that_is_left_early_lets_the_next_request_through(
    url: str, make_tenant: MakeTenant, make_key: MakeKey
):
    with Client(url, make_key(make_tenant("acme"))) as client:
        client.store_documents(DOCUMENTS)
        for event in client.stream_answer(QUERY, options=PLENTY):
            assert isinstance(event, SearchResultsEvent)
            break
        assert client.search(QUERY).hits


def test_iterating_gives_every_node_once_whatever_the_size_of_a_page(acme: Any):
    nodes = [GivenNode(external_id=f"n{i}", node_type="note", content=f"{i}") for i in range(7)]
    stored = acme.store_nodes(nodes, dataset_name="notes").nodes
    wanted = sorted(node.node_id for node in stored)
    for limit in (1, 3, 7, 100):
        found = acme.iterate_nodes(dataset_name="notes", limit=limit)
        assert [node.node_id for node in found] == wanted
    page = acme.list_nodes(dataset_name="notes", limit=3)
    assert len(page.nodes) == 3
    assert page.next_cursor is not None


def test_nodes_and_links_are_stored_listed_and_deleted(acme: Any):
    nodes = [
        GivenNode(external_id="a", node_type="note", title="Alpha", metadata={"kind": "x"}),
        GivenNode(external_id="b", node_type="note", title="Beta", acl=[]),
    ]
    first, second = acme.store_nodes(nodes).nodes
    assert first.action == "added"
    [link] = acme.store_links([GivenLink(source="a", target="b")]).links
    assert (link.source_id, link.target_id) == (first.node_id, second.node_id)
    graph = acme.read_graph([first.node_id])
    assert {node.node_id for node in graph.nodes} == {first.node_id, second.node_id}
    listed = acme.list_nodes(node_types=["note"], metadata={"kind": "x"}).nodes
    assert [node.external_id for node in listed] == ["a"]
    assert acme.list_similar_nodes(first.node_id, max_results=3).hits
    gone = acme.delete_nodes(["a", "b", "c"]).deleted
    assert sorted(each.external_id for each in gone) == ["a", "b"]
    assert acme.list_nodes(node_types=["note"]).nodes == []


def test_files_keep_their_names_and_queued_ones_give_a_job(acme: Any):
    names = ["Größe und Maß.md", "folder/inner file.md"]
    report = acme.store_documents(dict.fromkeys(names, b"# A file\n\nSome words."))
    assert report.added == 2
    stored = {node.external_id for node in acme.iterate_nodes(node_types=["article"])}
    assert set(names) <= stored
    job = acme.store_documents({"later.md": "# Later"}, wait=False)
    assert job.state == "queued"
    assert acme.read_job(job.job_id).job_id == job.job_id


def test_feedback_is_given_on_a_trace_that_can_be_read(acme: Any):
    found = acme.search(QUERY)
    hit = found.hits[0].node.node_id
    given = acme.give_feedback(found.trace_id, "helpful", node_id=hit, note="Thanks.")
    assert given.trace_id == found.trace_id
    trace = acme.read_trace(found.trace_id)
    assert trace.kind == "search"
    assert trace.hits[0].node_id == hit
    assert acme.read_egress().policy == "off"
    assert acme.iterate_egress_calls(limit=1) == []


def test_fields_examples_and_schemas_are_typed(acme: Any):
    assert acme.find_fields("orders").fields == []
    assert acme.find_examples("orders", verified=True).examples == []
    with pytest.raises(NotFound, match="no schema"):
        acme.build_schema_context("orders", dataset_name="sales_db")


def test_the_examples_of_the_guide_run(
    url: str, make_tenant: MakeTenant, make_key: MakeKey, capsys: pytest.CaptureFixture[str]
):
    key = make_key(make_tenant("acme"))
    examples = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        exec(example.replace("http://127.0.0.1:8000", url).replace("cf_...", key), {})
    printed = capsys.readouterr().out
    assert "Pump" in printed
    assert "extractive ['Pump']" in printed or "gated []" in printed
    assert "There is no node 2000000000." in printed


# --- whose it is ----------------------------------------------------------------------------------


def test_a_client_sees_nothing_of_another_tenant(acme: Any, globex: Any):
    found = acme.search(QUERY)
    node_id = found.hits[0].node.node_id
    assert globex.search(QUERY).hits == []
    assert globex.build_context(QUERY).blocks == []
    assert globex.answer(QUERY).citations == []
    assert not [each for each in globex.stream_answer(QUERY) if isinstance(each, CitationEvent)]
    assert globex.iterate_nodes() == []
    assert globex.delete_nodes(list(DOCUMENTS)).deleted == []
    assert globex.read_graph([node_id]).nodes == []
    job = acme.store_documents({"later.md": "# Later"}, wait=False)
    refused: list[Callable[[], object]] = [
        lambda: globex.read_node(node_id),
        lambda: globex.list_similar_nodes(node_id),
        lambda: globex.read_trace(found.trace_id),
        lambda: globex.give_feedback(found.trace_id, "helpful"),
        lambda: globex.read_job(job.job_id),
    ]
    for ask in refused:
        with pytest.raises(NotFound):
            ask()


def test_a_tenant_is_picked_among_those_of_the_key(
    url: str, connect: Connect, acme: Any, make_key: MakeKey, make_tenant: MakeTenant
):
    key = make_key("acme", make_tenant("globex"))
    assert connect(url, key, tenant="acme").search(QUERY).hits
    assert connect(url, key, tenant="globex").search(QUERY).hits == []
    with pytest.raises(InvalidInput, match="X-Tenant"):
        connect(url, key).search(QUERY)
    with pytest.raises(Forbidden):
        connect(url, make_key("acme"), tenant="globex").search(QUERY)


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_wrong_key_and_a_missing_scope_are_errors_of_their_own(
    url: str, connect: Connect, acme: Any, make_key: MakeKey
):
    for key in (None, "cf_wrong"):
        with pytest.raises(Unauthenticated) as caught:
            connect(url, key).search(QUERY)
        assert caught.value.status == 401
        assert caught.value.__notes__[0].startswith("request id: ")
    reader = connect(url, make_key("acme", scopes=["search"]))
    with pytest.raises(Forbidden, match="ingest"):
        reader.store_documents(DOCUMENTS)
    with pytest.raises(Unauthenticated):
        connect(url, "cf_wrong").stream_answer(QUERY)


def test_what_the_service_refuses_comes_with_its_hint(acme: Any):
    with pytest.raises(NotFound) as caught:
        acme.read_node(2_000_000_000)
    assert "2000000000" in caught.value.message
    with pytest.raises(InvalidInput, match="cursor"):
        acme.list_nodes(cursor="nonsense")
    with pytest.raises(NotFound) as caught:
        acme.read_trace("1f0c9a52-6f0b-4f3e-9d57-3f1f6c1f2a10")
    assert caught.value.hint == "Traces are forgotten in time."


def test_filters_and_options_reach_the_service(acme: Any):
    only = GivenFilters(docs=["returns.md"])
    assert {hit.node.title for hit in acme.search(QUERY, filters=only).hits} == {"Returns"}
    keywords = GivenOptions(bm25_weight=1, vector_weight=0)
    assert acme.search(QUERY, options=keywords).mode == "keywords"


def test_a_key_that_is_used_too_often_waits_as_it_is_told(
    database: LiveDatabase, connect: Connect, make_tenant: MakeTenant, make_key: MakeKey
):
    key = make_key(make_tenant("acme"))
    app = app_for(database, contextforge_rate_limit=60, contextforge_rate_burst=1)
    with run_app(app) as url:
        assert connect(url, key).list_nodes().nodes == []
        with pytest.raises(RateLimited) as caught:
            connect(url, key, retries=NO_RETRIES).list_nodes()
        assert caught.value.retry_after == 1
        started = time.monotonic()
        assert connect(url, key).list_nodes().nodes == []
        assert time.monotonic() - started > 0.5


@pytest.mark.parametrize(
    ("status", "headers", "requests"),
    [(503, {"Retry-After": "0"}, 3), (429, {"Retry-After": "0"}, 3), (503, {}, 1), (500, {}, 1)],
)
def test_a_request_is_made_again_only_if_it_was_told_when(
    status: int, headers: dict[str, str], requests: int, *, connect: Connect
):
    seen: list[str] = []

    async def refuse(request: Request) -> Response:
        seen.append(request.url.path)
        return Response("no", status_code=status, headers=headers)

    with run_app(Starlette(routes=[Route("/{path:path}", refuse)])) as url:
        with pytest.raises(ServiceError) as caught:
            connect(url, "cf_key", retries=Retries(most=2)).read_node(1)
        assert caught.value.status == status
    assert len(seen) == requests


def test_what_is_not_the_service_is_told_apart_from_a_refusal(connect: Connect):
    with pytest.raises(ServiceUnreachable):
        connect("http://127.0.0.1:1", "cf_key").read_node(1)
    with pytest.raises(ServiceUnreachable):
        connect("no-url", "cf_key").read_node(1)

    async def welcome(_: Request) -> Response:
        return Response("<h1>Welcome</h1>", media_type="text/html")

    routes = [Route("/{path:path}", welcome, methods=["GET", "POST"])]
    with run_app(Starlette(routes=routes)) as url:
        with pytest.raises(ServiceUnreachable, match="does not speak"):
            connect(url, "cf_key").read_node(1)
        with pytest.raises(ServiceUnreachable, match="broke off"):
            connect(url, "cf_key").stream_answer(QUERY)


def test_a_service_that_is_too_slow_is_not_waited_for(connect: Connect):
    async def sleep(_: Request) -> Response:
        await asyncio.sleep(0.5)
        return Response()

    with (
        run_app(Starlette(routes=[Route("/{path:path}", sleep)])) as url,
        pytest.raises(ServiceUnreachable, match="in time"),
    ):
        connect(url, "cf_key", timeout=0.1).read_node(1)
