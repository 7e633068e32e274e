"""The server of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


class AnnouncedServer(uvicorn.Server):
    """A server that says so once it takes requests, not when the port is merely its own."""

    def __init__(self, config: uvicorn.Config, *, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()
