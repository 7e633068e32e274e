"""The server: how it takes connections, and when it says so."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from uvicorn.supervisors import Multiprocess


def bind_address(config: uvicorn.Config) -> socket.socket:
    """Bind the address of a server; its answers leave at once.

    Connections inherit the option. The event loop would not set it: uvicorn's socket does not name
    its protocol. Without it the end of an answer waits 40 ms for the client's acknowledgement.
    """
    listening = config.bind_socket()
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def serve_by_workers(config: uvicorn.Config) -> None:
    """Serve in as many processes as the configuration says, until stopped."""
    Multiprocess(config, sockets=[bind_address(config)]).run()


class AnnouncedServer(uvicorn.Server):
    """A server that says so once it takes requests, not when the port is merely its own."""

    def __init__(self, config: uvicorn.Config, *, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()
