"""A local HTTP server that speaks the Messages API, well or badly as a test asks it to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Answer = Callable[["_Handler", dict[str, Any]], None]
Writer = Callable[[dict[str, Any]], str]


@dataclass
class MessagesServer:
    """Where the server is, what it was sent, and how it answers next."""

    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    def will(self, *answers: Answer) -> None:
        """Answer the next calls so, one after the other; the last goes on for all that follow."""
        self.answers[:] = answers

    def prompts(self) -> list[str]:
        """Return the text of every call so far, with its system prompt in front."""
        return [
            f"{request.get('system', '')}\n{request['messages'][0]['content']}"
            for request in self.requests
        ]

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def run_messages_server(*answers: Answer) -> Iterator[MessagesServer]:
    """Run a server until the block ends; without answers it says "Yes [1]."."""
    state = MessagesServer(answers=list(answers) or [say("Yes [1].")])
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    server.daemon_threads = True
    state.base_url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def say(text: str | Writer, *, input_tokens: int = 11, output_tokens: int = 7) -> Answer:
    """Answer with a text, or with what a function makes of the request; streamed when asked."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        words = text if isinstance(text, str) else text(request)
        if request.get("stream"):
            handler.send_events(stream_events(words, input_tokens, output_tokens))
        else:
            handler.send_json(200, make_message(words, input_tokens, output_tokens))

    return answer


def count(input_tokens: object) -> Answer:
    """Answer a request to count tokens."""
    return lambda handler, _: handler.send_json(200, {"input_tokens": input_tokens})


def fail(status: int, **headers: str) -> Answer:
    """Answer with an error of that status."""
    body = {"type": "error", "error": {"type": "test_error", "message": "leaked-by-the-server"}}
    return lambda handler, _: handler.send_json(status, body, **headers)


def hang() -> Answer:
    """Never answer."""
    return lambda handler, _: handler.wait()


def drip(seconds: float = 0.05) -> Answer:
    """Send the body of a right answer byte by byte, each in time and the whole never."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        kind = "text/event-stream" if request.get("stream") else "application/json"
        handler.start(200, kind)
        while not handler.state.closing.wait(seconds):
            handler.send_bytes(b" ")

    return answer


def garble() -> Answer:
    """Answer with JSON that breaks off in the middle, in a complete response."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        if request.get("stream"):
            handler.send_events(
                [*stream_events("Yes")[:3], "event: content_block_delta\ndata: {\n\n"]
            )
        else:
            handler.send_body(200, "application/json", b'{"type": "message", "content": [')

    return answer


def send_page() -> Answer:
    """Answer with a web page, as a proxy in between may do."""
    return lambda handler, _: handler.send_body(200, "text/html", b"<html>Sign in</html>")


def cut(after: int = 3) -> Answer:
    """Close the connection in the middle of the answer; streamed: after so many events."""

    def answer(handler: _Handler, request: dict[str, Any]) -> None:
        if request.get("stream"):
            handler.send_events(stream_events("Some words of an answer")[:after])
        else:
            handler.start(200, "application/json", **{"Content-Length": "5000"})
            handler.send_bytes(b'{"type": "message", "content"')

    return answer


def make_message(text: str, input_tokens: int = 11, output_tokens: int = 7) -> dict[str, Any]:
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens},
    }


def stream_events(text: str, input_tokens: int = 11, output_tokens: int = 7) -> list[str]:
    """Return the events of a streamed answer, a few characters each unless it is long."""
    size = max(7, len(text) // 100)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    started = {**make_message("", input_tokens, 1), "content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    return [
        _event("message_start", message=started),
        _event("content_block_start", index=0, content_block=block),
        'event: ping\ndata: {"type": "ping"}\n\n',
        *(
            _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
            for piece in pieces
        ),
        _event("content_block_stop", index=0),
        _event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": output_tokens},
        ),
        _event("message_stop"),
    ]


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


class _Handler(BaseHTTPRequestHandler):
    state: MessagesServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(size))
        self.close_connection = True
        if self.path not in ("/v1/messages", "/v1/messages/count_tokens") or not self._has_key():
            self.send_json(404, {"type": "error", "error": {"type": "not_found_error"}})
            return
        self.state.requests.append(request)
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has given up
            self.state.next_answer()(self, request)

    def _has_key(self) -> bool:
        return bool(self.headers.get("Authorization") or self.headers.get("X-Api-Key"))

    def start(self, status: int, kind: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def send_bytes(self, body: bytes) -> None:
        self.wfile.write(body)
        self.wfile.flush()

    def send_body(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.start(status, kind, **{"Content-Length": str(len(body))}, **headers)
        self.send_bytes(body)

    def send_json(self, status: int, body: dict[str, Any], **headers: str) -> None:
        self.send_body(status, "application/json", json.dumps(body).encode(), **headers)

    def send_events(self, events: Sequence[str]) -> None:
        self.start(200, "text/event-stream")
        for event in events:
            self.send_bytes(event.encode())

    def wait(self) -> None:
        """Keep the connection open and silent until the test is over."""
        while not self.state.closing.is_set():
            time.sleep(0.01)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""
