"""Calls to Claude by the real client against a local server: replies, failures, deadlines."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from service.errors import LlmUnavailable
from service.llm import Reply, ask, open_client, stream
from service.llm.circuit import Circuits
from service.llm.deadline import Deadline, run_within
from tests.messages_server import (
    Answer,
    MessagesServer,
    cut,
    drip,
    fail,
    garble,
    hang,
    run_messages_server,
    say,
    send_page,
)

DEADLINE = 1.0
LONG = "x" * 10_000_000


def ask_server(server: MessagesServer, **changes: Any) -> Reply:
    given = {"model": "m", "prompt": "Why?", "max_tokens": 100, "deadline": DEADLINE}
    return ask(open_client("key", server.base_url), **{**given, **changes})


def stream_server(server: MessagesServer, **changes: Any) -> list[str | Reply]:
    given = {"model": "m", "prompt": "Why?", "max_tokens": 100, "deadline": DEADLINE}
    return list(stream(open_client("key", server.base_url), **{**given, **changes}))


def wait_for_threads(name: str) -> None:
    end = time.monotonic() + 5
    while any(thread.name == name for thread in threading.enumerate()):
        assert time.monotonic() < end, "a thread is left behind"
        time.sleep(0.02)


# --- success ------------------------------------------------------------------------------------


def test_a_reply_has_its_text_its_tokens_and_its_reason_to_stop():
    with run_messages_server(say("Because.", input_tokens=5, output_tokens=3)) as server:
        reply = ask_server(server, system="Be brief.")
    assert reply == Reply("Because.", 5, 3, "end_turn", 1)
    assert server.requests == [
        {
            "model": "m",
            "max_tokens": 100,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "Why?"}],
        }
    ]


def test_a_stream_gives_the_pieces_as_they_come_and_then_the_whole():
    with run_messages_server(say("Because it is so.", input_tokens=5, output_tokens=3)) as server:
        *pieces, reply = stream_server(server)
    assert len(pieces) > 1
    assert "".join(str(piece) for piece in pieces) == "Because it is so."
    assert reply == Reply("Because it is so.", 5, 3, "end_turn", 1)
    assert server.requests[0]["stream"] is True


def test_a_client_of_the_caller_with_its_own_retries_still_calls_as_often_as_asked():
    with run_messages_server(fail(529)) as server:
        client = open_client("key", server.base_url).with_options(max_retries=5)
        with pytest.raises(LlmUnavailable):
            ask(client, model="m", prompt="p", max_tokens=9, attempts=1)
        assert len(server.requests) == 1


# --- stand-ins ----------------------------------------------------------------------------------


class StandIn:
    """What users put in the place of a client."""

    def __init__(self, reply: object) -> None:
        self.messages = SimpleNamespace(create=self.create)
        self.reply = reply
        self.arguments: dict[str, object] = {}

    def create(self, **arguments: object) -> object:
        self.arguments = arguments
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def test_a_stand_in_needs_no_more_than_a_text():
    client = StandIn(SimpleNamespace(content=[SimpleNamespace(text="Yes.")]))
    assert ask(client, model="m", prompt="p", max_tokens=9) == Reply("Yes.")
    assert set(client.arguments) == {"model", "max_tokens", "messages"}
    assert list(stream(client, model="m", prompt="p", max_tokens=9)) == ["Yes.", Reply("Yes.")]


@pytest.mark.parametrize(
    "reply",
    [
        RuntimeError("boom"),
        TimeoutError("slow"),
        None,
        SimpleNamespace(content=[]),
        SimpleNamespace(content=[SimpleNamespace(text=None)]),
        SimpleNamespace(content="Yes."),
    ],
    ids=str,
)
def test_whatever_a_stand_in_does_wrong_is_unavailable(reply: object):
    with pytest.raises(LlmUnavailable):
        ask(StandIn(reply), model="m", prompt="p", max_tokens=9)
    with pytest.raises(LlmUnavailable):
        list(stream(StandIn(reply), model="m", prompt="p", max_tokens=9))


def test_failing_stand_ins_do_not_stop_each_other():
    for _ in range(8):
        with pytest.raises(LlmUnavailable, match="RuntimeError"):
            ask(StandIn(RuntimeError("boom")), model="m", prompt="p", max_tokens=9)


# --- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words", "calls"),
    [
        pytest.param(fail(400), "status 400", 1, id="400"),
        pytest.param(fail(401), "Check ANTHROPIC_API_KEY", 1, id="401"),
        pytest.param(fail(404), "name of the model", 1, id="404"),
        pytest.param(fail(429), "status 429", 2, id="429"),
        pytest.param(fail(500), "status 500", 2, id="500"),
        pytest.param(fail(529), "status 529", 2, id="529"),
        pytest.param(send_page(), "could not be read", 1, id="web page"),
        pytest.param(garble(), "could not be read", 1, id="bad JSON"),
        pytest.param(say(""), "no text", 1, id="empty"),
        pytest.param(say(LONG), "far longer", 1, id="10 MB"),
    ],
)
def test_a_failure_says_what_happened_and_nothing_the_server_said(
    answer: Answer, words: str, calls: int
):
    for call in (ask_server, stream_server):
        with run_messages_server(answer) as server:
            with pytest.raises(LlmUnavailable, match=words) as caught:
                call(server)
            assert len(server.requests) == calls
            assert caught.value.calls == calls
            assert "leaked-by-the-server" not in str(caught.value)


def test_a_connection_that_is_cut_is_unavailable():
    with run_messages_server(cut()) as server, pytest.raises(LlmUnavailable):
        ask_server(server)
    with run_messages_server(cut(5)) as server, pytest.raises(LlmUnavailable, match="broke off"):
        stream_server(server)


def test_nobody_listening_is_unavailable():
    with pytest.raises(LlmUnavailable, match="could not be reached"):
        ask(open_client("key", "http://127.0.0.1:9"), model="m", prompt="p", max_tokens=9)


def test_an_error_in_the_middle_of_a_stream_is_unavailable():
    def break_down(handler: Any, _: object) -> None:
        handler.send_events(['event: error\ndata: {"type": "error", "error": {}}\n\n'])

    with run_messages_server(break_down) as server, pytest.raises(LlmUnavailable, match="middle"):
        stream_server(server)


@pytest.mark.parametrize("call", [ask_server, stream_server])
@pytest.mark.parametrize("answer", [hang(), drip(0.02)], ids=["hang", "drip"])
def test_the_deadline_counts_from_start_to_end_and_leaves_no_thread(answer: Answer, call: Any):
    started = time.monotonic()
    with run_messages_server(answer) as server, pytest.raises(LlmUnavailable, match="1 seconds"):
        call(server, deadline=1)
    assert 1 <= time.monotonic() - started < 3
    wait_for_threads("claude")


def test_a_stand_in_that_never_returns_is_left_behind():
    over = threading.Event()
    with pytest.raises(LlmUnavailable, match="seconds"):
        run_within(Deadline.after(0.05), over.wait)
    over.set()


# --- retries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [ask_server, stream_server])
def test_what_may_pass_is_tried_once_more(call: Any):
    with run_messages_server(fail(529), say("Now.")) as server:
        result = call(server)
    reply = result if isinstance(result, Reply) else result[-1]
    assert (reply.text, reply.calls) == ("Now.", 2)


def test_a_server_that_asks_for_more_patience_than_there_is_gets_none():
    with run_messages_server(fail(429, retry_after="60")) as server:
        started = time.monotonic()
        with pytest.raises(LlmUnavailable):
            ask_server(server)
        assert time.monotonic() - started < 0.5
        assert len(server.requests) == 1


def test_a_stream_is_not_begun_again_once_something_was_shown():
    with run_messages_server(cut(6), say("Again.")) as server:
        with pytest.raises(LlmUnavailable):
            stream_server(server)
        assert len(server.requests) == 1


# --- circuit breaker ----------------------------------------------------------------------------


def test_the_circuit_opens_after_failures_in_a_row_and_closes_when_claude_is_well_again():
    circuits = Circuits(failures=3, rest_seconds=0.3)
    with run_messages_server(fail(500)) as server:
        for _ in range(3):
            with pytest.raises(LlmUnavailable, match="status 500"):
                ask_server(server, attempts=1, circuits=circuits)
        server.will(say("Well."))
        with pytest.raises(LlmUnavailable, match="left alone") as caught:
            ask_server(server, attempts=1, circuits=circuits)
        assert caught.value.calls == 0
        assert len(server.requests) == 3
        time.sleep(0.35)
        assert ask_server(server, circuits=circuits).text == "Well."
        assert ask_server(server, circuits=circuits).text == "Well."


def test_a_call_that_fails_after_the_rest_opens_the_circuit_again():
    circuits = Circuits(failures=2, rest_seconds=0.2)
    with run_messages_server(fail(500)) as server:
        for _ in range(2):
            with pytest.raises(LlmUnavailable, match="status 500"):
                ask_server(server, attempts=1, circuits=circuits)
        time.sleep(0.25)
        with pytest.raises(LlmUnavailable, match="status 500"):
            ask_server(server, attempts=1, circuits=circuits)
        with pytest.raises(LlmUnavailable, match="left alone"):
            stream_server(server, attempts=1, circuits=circuits)


def test_refused_calls_do_not_open_the_circuit():
    circuits = Circuits(failures=2)
    with run_messages_server(fail(400)) as server:
        for _ in range(4):
            with pytest.raises(LlmUnavailable, match="status 400"):
                ask_server(server, circuits=circuits)


def test_another_key_has_a_circuit_of_its_own():
    circuits = Circuits(failures=1)
    given: dict[str, Any] = {"model": "m", "prompt": "p", "max_tokens": 9, "circuits": circuits}
    with run_messages_server(fail(429)) as server:
        for key in ("one", "two"):
            with pytest.raises(LlmUnavailable, match="status 429"):
                ask(open_client(key, server.base_url), attempts=1, **given)


def test_threads_share_a_circuit_without_tripping_over_each_other():
    circuits = Circuits(failures=1000)
    with run_messages_server(fail(400)) as server:
        client = open_client("key", server.base_url)
        errors: list[Exception] = []

        def call() -> None:
            for _ in range(10):
                try:
                    ask(client, model="m", prompt="p", max_tokens=9, circuits=circuits)
                except Exception as exc:  # noqa: BLE001 - each is looked at below
                    errors.append(exc)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(errors) == 80
    assert {type(error) for error in errors} == {LlmUnavailable}
