"""Reads responses under guard: by the clock and up to a size, whatever the server sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

from service.errors import LlmUnavailable
from service.llm.calls import MessagesClient, Reply, Request
from service.llm.deadline import Deadline


def is_sdk(client: MessagesClient) -> bool:
    """Tell a client of the anthropic package from a stand-in."""
    from anthropic.resources import Messages

    return isinstance(client.messages, Messages)


def send(
    client: MessagesClient, request: Request, *, end: Deadline, stream: bool = False
) -> AbstractContextManager[Any]:
    """Send the call by the anthropic package; the body is yet to be read."""
    once = client.with_options(max_retries=0, timeout=end.remaining())  # type: ignore[attr-defined]
    arguments = {**request.arguments(), "stream": True} if stream else request.arguments()
    response: AbstractContextManager[Any] = once.messages.with_streaming_response.create(
        **arguments
    )
    return response


def read_chunks(response: Any, request: Request, *, end: Deadline) -> Iterator[bytes]:
    """Yield the body as it arrives, while there is time and it is of a possible size."""
    size = 0
    for chunk in response.iter_bytes():
        end.check()
        size += len(chunk)
        if size > request.byte_limit():
            raise LlmUnavailable("Claude's answer is far longer than what was asked for.")
        yield chunk


def parse_json(text: bytes) -> Any:
    """Return JSON objects as plain objects, so that they read like a stand-in's reply."""
    return json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields))


def read_reply(message: Any, *, calls: int = 1) -> Reply:
    """Return the text and the counts of a message; LlmUnavailable when it has no text."""
    text = "".join(_read_texts(message)).strip()
    stop_reason = getattr(message, "stop_reason", None)
    if not text:
        raise LlmUnavailable("Claude's answer has no text in it.")
    usage = getattr(message, "usage", None)
    return Reply(
        text=text,
        input_tokens=read_count(usage, "input_tokens"),
        output_tokens=read_count(usage, "output_tokens"),
        stop_reason=stop_reason if isinstance(stop_reason, str) else None,
        calls=calls,
    )


def read_count(usage: object, name: str) -> int:
    """Return a token count; 0 where a stand-in has none."""
    count = getattr(usage, name, 0)
    return count if isinstance(count, int) else 0


def _read_texts(message: Any) -> Iterator[str]:
    content = getattr(message, "content", None)
    for block in content if isinstance(content, list | tuple) else ():
        text = getattr(block, "text", None)
        if isinstance(text, str):
            yield text
