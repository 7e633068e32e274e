"""How the server takes connections."""

from __future__ import annotations

import socket

import uvicorn

from service.api.server import bind_address


async def app(scope: object, receive: object, send: object) -> None:
    """An application that nobody asks here."""


def test_answers_do_not_wait_for_acknowledgements():
    with bind_address(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None)) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
