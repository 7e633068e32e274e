"""Connections of a fetch: to public addresses only, and never beyond its deadline."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import httpcore

from service.errors import FetchFailed, UrlRefused
from service.ingestion.addresses import judge_address

Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which a fetch is given up, whatever it waits for."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """The seconds that are left; FetchFailed if none are."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise FetchFailed("The page did not arrive in time.", hint="Try again later.")
        return left


def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system finds them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class GuardedBackend(httpcore.NetworkBackend):
    """Looks a name up once, checks every address found, and connects to one of those checked."""

    deadline: Deadline
    resolve: Resolve = resolve_host
    trusted: Collection[str] = ()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in self._find_addresses(host, port):
            try:
                # By address: looked up again, the name could lead elsewhere by now.
                stream = httpcore.SyncBackend().connect_tcp(
                    address, port, timeout=self.deadline.remaining(), socket_options=socket_options
                )
                return _TimedStream(stream, self.deadline)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                failure = exc
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def _find_addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host; refused if a single one is not public."""
        addresses = self._look_up(host, port)
        for address in addresses:
            kind = None if address in self.trusted else judge_address(address)
            if kind is not None:
                raise UrlRefused(
                    f"{host} is at {address}, {kind}.",
                    hint="Only pages of the public internet are fetched.",
                )
        return addresses

    def _look_up(self, host: str, port: int) -> Sequence[str]:
        """Resolve beside this thread: the system's resolver knows no deadline."""
        answer: SimpleQueue[Sequence[str] | OSError | UnicodeError] = SimpleQueue()

        def ask() -> None:
            try:
                answer.put(self.resolve(host, port))
            except (OSError, UnicodeError) as exc:
                answer.put(exc)

        Thread(target=ask, name="resolve", daemon=True).start()
        try:
            found = answer.get(timeout=self.deadline.remaining())
        except Empty:
            raise FetchFailed(f"{host} was not found in time.", hint="Try again later.") from None
        if isinstance(found, OSError | UnicodeError):
            raise FetchFailed(f"{host} was not found.", hint="Is the name right?") from found
        return found


@dataclass(frozen=True, slots=True)
class _TimedStream(httpcore.NetworkStream):
    """A connection that waits no longer than its fetch may."""

    stream: httpcore.NetworkStream
    deadline: Deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self.stream.read(max_bytes, timeout=self.deadline.remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stream.write(buffer, timeout=self.deadline.remaining())

    def close(self) -> None:
        self.stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self.deadline.remaining()
        return _TimedStream(
            self.stream.start_tls(ssl_context, server_hostname, left), self.deadline
        )

    def get_extra_info(self, info: str) -> Any:
        return self.stream.get_extra_info(info)
