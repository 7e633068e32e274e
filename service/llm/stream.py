"""A reply as it is written, under the same guards as one that is read whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

from service.errors import LlmUnavailable
from service.llm.calls import (
    MessagesClient,
    OpenCall,
    Record,
    Reply,
    Request,
    record_nothing,
    recorded,
)
from service.llm.circuit import Circuits, name_circuit
from service.llm.deadline import Deadline, start_work
from service.llm.failures import retry, unavailable_errors
from service.llm.messages import ATTEMPTS, CIRCUITS, DEADLINE_SECONDS
from service.llm.response import (
    is_sdk,
    parse_json,
    read_chunks,
    read_count,
    read_reply,
    send,
)


def stream(
    client: MessagesClient,
    *,
    model: str,
    prompt: str,
    max_tokens: int,
    system: str | None = None,
    deadline: float = DEADLINE_SECONDS,
    attempts: int = ATTEMPTS,
    record: Record = record_nothing,
    circuits: Circuits = CIRCUITS,
) -> Iterator[str | Reply]:
    """Yield pieces of text as they come and the whole Reply at the end; or raise LlmUnavailable.

    A call is repeated only while nothing of its answer has come.
    """
    request = Request(model=model, prompt=prompt, max_tokens=max_tokens, system=system)
    with circuits.watch(name_circuit(client)), recorded(record, request) as call:
        end = Deadline.after(deadline)
        feed = _Feed(client, request, call=call, end=end, attempts=attempts)
        for item in feed.follow():
            if isinstance(item, Reply):
                call.finish(item)
            yield item


class _Feed:
    """One streamed call: read on a thread of its own, followed up to the deadline on this one."""

    def __init__(
        self,
        client: MessagesClient,
        request: Request,
        *,
        call: OpenCall,
        end: Deadline,
        attempts: int,
    ) -> None:
        self._client = client
        self._request = request
        self._call = call
        self._end = end
        self._attempts = attempts
        self._items: SimpleQueue[str | Reply | BaseException] = SimpleQueue()
        self._abandoned = Event()

    def follow(self) -> Iterator[str | Reply]:
        """Yield what arrives, ending with the reply."""
        start_work(self._read)
        try:
            while True:
                item = self._next_item()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, Reply):
                    return
        finally:
            self._abandoned.set()

    def _next_item(self) -> str | Reply | BaseException:
        try:
            return self._items.get(timeout=self._end.remaining())
        except Empty as exc:
            raise self._end.missed() from exc

    def _read(self) -> None:
        try:
            with unavailable_errors(), ExitStack() as stack:
                for item in self._receive(stack):
                    if self._abandoned.is_set():
                        return
                    self._items.put(item)
        except BaseException as exc:  # noqa: BLE001 - it is raised again where it is followed
            self._items.put(exc)

    def _receive(self, stack: ExitStack) -> Iterator[str | Reply]:
        def begin(number: int) -> Any:
            self._call.made = number
            if not is_sdk(self._client):
                return self._client.messages.create(**self._request.arguments())
            sent = send(self._client, self._request, end=self._end, stream=True)
            return stack.enter_context(sent)

        begun = retry(begin, end=self._end, attempts=self._attempts)
        if not is_sdk(self._client):
            yield from _yield_whole(read_reply(begun, calls=self._call.made))
            return
        chunks = read_chunks(begun, self._request, end=self._end)
        if "event-stream" in begun.headers.get("content-type", ""):
            yield from _read_stream(chunks, calls=self._call.made)
        else:  # a server that does not stream
            yield from _yield_whole(read_reply(parse_json(b"".join(chunks)), calls=self._call.made))


def _yield_whole(reply: Reply) -> Iterator[str | Reply]:
    yield reply.text
    yield reply


def _read_stream(chunks: Iterable[bytes], *, calls: int) -> Iterator[str | Reply]:
    """Yield the pieces of text of a stream of events, then the reply they make."""
    pieces: list[str] = []
    reply = Reply("", calls=calls)
    for event in _read_events(chunks):
        match getattr(event, "type", None):
            case "message_start":
                usage = getattr(getattr(event, "message", None), "usage", None)
                reply = replace(reply, input_tokens=read_count(usage, "input_tokens"))
            case "content_block_delta":
                text = getattr(getattr(event, "delta", None), "text", None)
                if isinstance(text, str) and text:
                    pieces.append(text)
                    yield text
            case "message_delta":
                reply = _add_end(reply, event)
            case "error":
                raise LlmUnavailable("Claude failed in the middle of its answer.")
            case "message_stop":
                yield _finish_reply(reply, "".join(pieces))
                return
    raise LlmUnavailable("Claude's answer broke off in the middle.")


def _add_end(reply: Reply, event: Any) -> Reply:
    reason = getattr(getattr(event, "delta", None), "stop_reason", None)
    count = read_count(getattr(event, "usage", None), "output_tokens")
    return replace(reply, output_tokens=count, stop_reason=reason)


def _finish_reply(reply: Reply, text: str) -> Reply:
    if not text.strip():
        raise LlmUnavailable("Claude's answer has no text in it.")
    return replace(reply, text=text.strip())


def _read_events(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Yield the data of server-sent events; each of Claude's is JSON on one line."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield parse_json(line.removeprefix(b"data:"))
