"""An ASGI application behind a real server on the loopback address, in a thread."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"


@contextmanager
def run_app(app: ASGIApp) -> Iterator[str]:
    """Serve an application until the end of the block; yield its address."""
    listening = socket.create_server((LOOPBACK, 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        # Connections wait in the backlog until the server accepts them.
        yield f"http://{LOOPBACK}:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"
