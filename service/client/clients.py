"""The clients: one for threads, one for event loops, over the same requests."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from operator import attrgetter
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

import anyio
import httpx

from service import __version__
from service.api.models.nodes import ShownNodes
from service.api.models.records import ShownEgress, ShownEgressCall
from service.api.models.search import ShownNode
from service.client import calls
from service.client.calls import Call
from service.client.events import AnswerEvent, EventReader
from service.client.failures import DEFAULT_RETRIES, Retries, read_failure, translated_failures
from service.errors import InvalidInput

TIMEOUT = 70.0
"""Seconds: a little longer than the service takes at most by its own settings."""
EVENT_STREAM = {"Accept": "text/event-stream"}

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


Page = TypeVar("Page", bound=_Page)


def _sent(build: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """A method that makes a request and returns what it was answered with."""

    @wraps(build)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(build(*args, **kwargs))

    return _show_self(call)


def _awaited(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The same for an event loop."""

    @wraps(build)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(*args, **kwargs))

    return _show_self(call)


def _paged(
    build: Callable[P, Call[Page]], items: Callable[[Page], Sequence[Item]]
) -> Callable[Concatenate[Client, P], Iterator[Item]]:
    """A method that yields what is on a page and on all that follow."""

    @wraps(build)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
        asked = build(*args, **kwargs)
        while True:
            page = self.send(asked)
            yield from items(page)
            if page.next_cursor is None:
                return
            asked = asked.turn_to(page.next_cursor)

    return _show_self(call)


def _paged_awaited(
    build: Callable[P, Call[Page]], items: Callable[[Page], Sequence[Item]]
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[Item]]:
    """The same for an event loop."""

    @wraps(build)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Item]:
        asked = build(*args, **kwargs)
        while True:
            page = await self.send(asked)
            for item in items(page):
                yield item
            if page.next_cursor is None:
                return
            asked = asked.turn_to(page.next_cursor)

    return _show_self(call)


def _streamed(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[Client, P], Iterator[AnswerEvent]]:
    """A method that yields an answer as it is written."""

    @wraps(build)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[AnswerEvent]:
        return self.stream(build(*args, **kwargs))

    return _show_self(call)


def _streamed_awaited(
    build: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[AnswerEvent]]:
    """The same for an event loop."""

    @wraps(build)
    def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[AnswerEvent]:
        return self.stream(build(*args, **kwargs))

    return _show_self(call)


Method = TypeVar("Method", bound=Callable[..., object])


def _show_self(method: Method) -> Method:
    """Let `help` and editors see the arguments of the request after `self`."""
    known = signature(method)
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    shown = known.replace(
        parameters=[own, *known.parameters.values()], return_annotation=Signature.empty
    )
    method.__signature__ = shown  # type: ignore[attr-defined]
    return method


_read_nodes: Callable[[ShownNodes], Sequence[ShownNode]] = attrgetter("nodes")
_read_calls: Callable[[ShownEgress], Sequence[ShownEgressCall]] = attrgetter("calls")


class Client:
    """Calls a running service; close it, or use it in `with`. Safe to share between threads."""

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        tenant: str | None = None,
        caller: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries = DEFAULT_RETRIES,
    ) -> None:
        """Speak for a key, and for one of its tenants if it has several.

        caller: a label of the person it speaks for; feedback and experiments count by it.
        timeout: seconds to wait for a connection and for each piece of an answer.
        """
        self._retries = retries
        with translated_failures():
            self._http = httpx.Client(
                base_url=url, headers=_make_headers(api_key, tenant, caller), timeout=timeout
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    search = _sent(calls.search)
    build_context = _sent(calls.build_context)
    answer = _sent(calls.answer)
    stream_answer = _streamed(calls.answer)
    store_documents = _sent(calls.store_documents)
    read_job = _sent(calls.read_job)
    list_nodes = _sent(calls.list_nodes)
    iterate_nodes = _paged(calls.list_nodes, _read_nodes)
    read_node = _sent(calls.read_node)
    list_similar_nodes = _sent(calls.list_similar_nodes)
    store_nodes = _sent(calls.store_nodes)
    delete_nodes = _sent(calls.delete_nodes)
    store_links = _sent(calls.store_links)
    read_graph = _sent(calls.read_graph)
    find_fields = _sent(calls.find_fields)
    find_examples = _sent(calls.find_examples)
    build_schema_context = _sent(calls.build_schema_context)
    read_trace = _sent(calls.read_trace)
    give_feedback = _sent(calls.give_feedback)
    read_stats = _sent(calls.read_stats)
    read_egress = _sent(calls.read_egress)
    iterate_egress_calls = _paged(calls.read_egress, _read_calls)

    def send(self, call: Call[T]) -> T:
        """Make a request and read its response; what the service refuses is a ServiceError."""
        with translated_failures():
            response = self._open(self._http.build_request(**call.describe()), stream=False)
            return call.read(response)

    def stream(self, call: Call[Any]) -> Iterator[AnswerEvent]:
        """Make a request for events; leaving the loop early hangs up."""
        reader = EventReader()
        with translated_failures():
            request = self._http.build_request(**call.describe(), headers=EVENT_STREAM)
            response = self._open(request, stream=True)
            try:
                for received in response.iter_bytes():
                    yield from reader.feed(received)
            finally:
                response.close()
        reader.finish()

    def _open(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        made = 0
        while True:
            response = self._http.send(request, stream=stream)
            if response.is_success:
                return response
            response.read()
            wait = self._retries.find_wait(response, made=made)
            if wait is None:
                raise read_failure(response)
            time.sleep(wait)
            made += 1


class AsyncClient:
    """Calls a running service from an event loop; close it, or use it in `async with`."""

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        tenant: str | None = None,
        caller: str | None = None,
        timeout: float = TIMEOUT,
        retries: Retries = DEFAULT_RETRIES,
    ) -> None:
        """Speak for a key, and for one of its tenants if it has several.

        caller: a label of the person it speaks for; feedback and experiments count by it.
        timeout: seconds to wait for a connection and for each piece of an answer.
        """
        self._retries = retries
        with translated_failures():
            self._http = httpx.AsyncClient(
                base_url=url, headers=_make_headers(api_key, tenant, caller), timeout=timeout
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    search = _awaited(calls.search)
    build_context = _awaited(calls.build_context)
    answer = _awaited(calls.answer)
    stream_answer = _streamed_awaited(calls.answer)
    store_documents = _awaited(calls.store_documents)
    read_job = _awaited(calls.read_job)
    list_nodes = _awaited(calls.list_nodes)
    iterate_nodes = _paged_awaited(calls.list_nodes, _read_nodes)
    read_node = _awaited(calls.read_node)
    list_similar_nodes = _awaited(calls.list_similar_nodes)
    store_nodes = _awaited(calls.store_nodes)
    delete_nodes = _awaited(calls.delete_nodes)
    store_links = _awaited(calls.store_links)
    read_graph = _awaited(calls.read_graph)
    find_fields = _awaited(calls.find_fields)
    find_examples = _awaited(calls.find_examples)
    build_schema_context = _awaited(calls.build_schema_context)
    read_trace = _awaited(calls.read_trace)
    give_feedback = _awaited(calls.give_feedback)
    read_stats = _awaited(calls.read_stats)
    read_egress = _awaited(calls.read_egress)
    iterate_egress_calls = _paged_awaited(calls.read_egress, _read_calls)

    async def send(self, call: Call[T]) -> T:
        """Make a request and read its response; what the service refuses is a ServiceError."""
        with translated_failures():
            response = await self._open(self._http.build_request(**call.describe()), stream=False)
            return call.read(response)

    async def stream(self, call: Call[Any]) -> AsyncIterator[AnswerEvent]:
        """Make a request for events; close the iterator to hang up early."""
        reader = EventReader()
        with translated_failures():
            request = self._http.build_request(**call.describe(), headers=EVENT_STREAM)
            response = await self._open(request, stream=True)
            try:
                async for received in response.aiter_bytes():
                    for event in reader.feed(received):
                        yield event
            finally:
                await response.aclose()
        reader.finish()

    async def _open(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        made = 0
        while True:
            response = await self._http.send(request, stream=stream)
            if response.is_success:
                return response
            await response.aread()
            wait = self._retries.find_wait(response, made=made)
            if wait is None:
                raise read_failure(response)
            await anyio.sleep(wait)
            made += 1


def _make_headers(api_key: str | None, tenant: str | None, caller: str | None) -> Mapping[str, str]:
    headers = {"User-Agent": f"contextforge-client/{__version__}"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {_check_header(api_key, 'api_key')}"
    if tenant is not None:
        headers["X-Tenant"] = _check_header(tenant, "tenant")
    if caller is not None:
        headers["X-Caller"] = _check_header(caller, "caller")
    return headers


def _check_header(value: str, name: str) -> str:
    """Return what a header can hold; the error does not repeat it, for it may be a key."""
    cleaned = value.strip()
    if not cleaned or not cleaned.isascii() or not cleaned.isprintable():
        raise InvalidInput(f"{name} is empty, or holds characters that no header can.")
    return cleaned
