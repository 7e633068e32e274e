"""The client without a service: events, errors, and what is refused before it is sent."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import AsyncClient, Client
from service.api.models.answer import MessageEvent
from service.client import GivenNode, Retries, calls
from service.client.events import EventReader
from service.client.failures import read_failure
from service.errors import (
    EmbedderMismatch,
    InvalidInput,
    NotFound,
    RateLimited,
    ServiceError,
    ServiceUnreachable,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Letters that end a line for Python, but not in an event.
TEXT = "one\u2028two\x85three\x0cfour"
STREAM = (
    b": keep-alive\n\n"
    + b"event: message\r\ndata: "
    + MessageEvent(text=TEXT).model_dump_json().encode()
    + b"\r\n\r\n"
    + b'event: news\ndata: {"of": "a later version"}\n\n'
    + b'event: error\ndata: {"code": "overloaded", "message": "Busy.",\ndata: "hint": null}\n\n'
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]):
    places = [0, *sorted(cuts), len(STREAM)]
    reader = EventReader()
    events = [event for start, end in pairwise(places) for event in reader.feed(STREAM[start:end])]
    assert [type(event).__name__ for event in events] == ["MessageEvent", "ErrorEvent"]
    assert isinstance(events[0], MessageEvent)
    assert events[0].text == TEXT
    reader.finish()


def test_a_stream_that_ends_before_its_answer_is_an_error():
    reader = EventReader()
    list(reader.feed(b'event: message\ndata: {"text": "half"}\n\n'))
    with pytest.raises(ServiceUnreachable):
        reader.finish()


def test_a_problem_becomes_the_error_of_its_code_with_status_hint_and_request_id():
    problem = {"code": "embedder_mismatch", "detail": "Another model.", "hint": "Reembed."}
    error = read_failure(httpx.Response(409, json=problem, headers={"X-Request-ID": "r1"}))
    assert isinstance(error, EmbedderMismatch)
    assert (error.status, error.message, error.hint) == (409, "Another model.", "Reembed.")
    assert error.__notes__ == ["request id: r1"]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx.Response(404, text="<h1>nginx</h1>"), NotFound),
        (httpx.Response(429, json={"code": "of_a_later_version", "detail": "x"}), RateLimited),
        (httpx.Response(502, json=["no object"]), ServiceError),
        (httpx.Response(307, headers={"Location": "http://elsewhere"}), ServiceError),
    ],
)
def test_what_is_no_problem_of_ours_becomes_the_error_of_its_status(
    response: httpx.Response, kind: type[ServiceError]
):
    error = read_failure(response)
    assert type(error) is kind
    assert error.status == response.status_code


@pytest.mark.parametrize(
    ("status", "retry_after", "made", "wait"),
    [
        (503, "2", 0, 2.0),
        (429, "0", 1, 0.0),
        (429, "2", 2, None),
        (503, None, 0, None),
        (503, "Wed, 21 Oct 2030 07:28:00 GMT", 0, None),
        (503, "60", 0, None),
        (500, "1", 0, None),
        (504, "1", 0, None),
    ],
)
def test_only_what_was_told_to_come_back_soon_is_tried_again(
    status: int, retry_after: str | None, made: int, wait: float | None
):
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    response = httpx.Response(status, headers=headers)
    assert Retries(most=2, longest_wait=10).find_wait(response, made=made) == wait


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_key_that_no_header_can_hold_is_refused_and_not_repeated(
    kind: type[Client] | type[AsyncClient],
):
    for key in ("cf_secret\nX-Tenant: rival", "cf_sécret", " "):
        with pytest.raises(InvalidInput) as caught:
            kind("http://127.0.0.1:1", key)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: calls.search(" "),
        lambda: calls.search("a", max_results=21),
        lambda: calls.build_context("a", token_budget=0),
        lambda: calls.store_nodes([]),
        lambda: calls.store_nodes([GivenNode(external_id="a", node_type="b", embedding=[1.0])]),
        lambda: calls.store_documents({'a".md': b"x"}),
        lambda: calls.read_job("../nodes"),
        lambda: calls.read_trace(""),
        lambda: calls.give_feedback("no-uuid", "helpful"),
    ],
)
def test_what_can_never_work_is_refused_before_it_is_sent(build):
    with pytest.raises(InvalidInput):
        build()


def test_both_clients_have_the_same_methods_with_the_same_arguments():
    names = {name for name in vars(Client) if not name.startswith("_")}
    assert names == {name for name in vars(AsyncClient) if not name.startswith("_")}
    for name in names - {"close"}:
        mine, other = getattr(Client, name), getattr(AsyncClient, name)
        assert signature(mine).parameters == signature(other).parameters
        assert mine.__doc__


def test_every_method_stands_in_the_reference():
    reference = (DOCS / "reference" / "python.md").read_text()
    section = reference.partition("## Call the service")[2].partition("\n## ")[0]
    for name in vars(Client):
        # What takes a Call is for the client itself.
        if not name.startswith("_") and name not in {"send", "stream"}:
            assert f"`{name}(" in section


def test_importing_the_client_loads_no_database_model_or_web_framework():
    statement = (
        "import sys; from service import Client; names = {name.partition('.')[0] for name in"
        " sys.modules}; print(*sorted(names & {'sqlalchemy', 'psycopg', 'fastapi', 'starlette',"
        " 'torch', 'onnxruntime', 'scipy', 'anthropic', 'transformers'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", statement], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
