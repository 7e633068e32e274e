"""Real web servers for tests: each path answers as it is told, on the loopback address."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: sent whole, or with a pause after each byte of its head or its body."""

    body: bytes = b"<p>A page about the weather of the day.</p>"
    media_type: str | None = "text/html"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    head_pause: float = 0.0
    body_pause: float = 0.0
    hides_length: bool = False


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running server: its port, and what it was asked."""

    port: int
    replies: dict[str, Reply]
    requests: list[dict[str, str]]


@contextmanager
def run_web_server(
    replies: Mapping[str, Reply], *, ssl_context: ssl.SSLContext | None = None
) -> Iterator[WebServer]:
    """Serve the replies, by path, until the end of the block."""
    known, requests, over = dict(replies), list[dict[str, str]](), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append({"path": self.path, **dict(self.headers.items())})
            try:
                self._answer(known.get(self.path, Reply(b"nothing here", status=404)))
            except OSError:  # whoever asked has gone
                self.close_connection = True

        def _answer(self, reply: Reply) -> None:
            if reply.head_pause:
                self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000, reply.head_pause)
                return
            self.send_response(reply.status)
            if reply.media_type is not None:
                self.send_header("Content-Type", reply.media_type)
            if not reply.hides_length:
                self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if reply.body_pause:
                self._drip(reply.body, reply.body_pause)
            else:
                self.wfile.write(reply.body)

        def _drip(self, data: bytes, pause: float) -> None:
            for byte in data:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if over.wait(pause):
                    return

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing: the test looks at what was asked."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    if ssl_context is not None:
        server.socket = ssl_context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield WebServer(server.server_address[1], known, requests)
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
