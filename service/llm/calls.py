"""A call to Claude and its reply, as values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from service.errors import LlmUnavailable


class MessagesClient(Protocol):
    """An Anthropic client, or a stand-in whose `messages.create(...)` returns a reply."""

    @property
    def messages(self) -> Any:
        """What has the `create` method."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What Claude wrote, what it cost, and how many calls it took."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    stop_reason: str | None = None
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Request:
    """One call as it is sent."""

    model: str
    max_tokens: int
    prompt: str = field(repr=False)
    system: str | None = field(default=None, repr=False)

    def arguments(self) -> Mapping[str, Any]:
        """Return what `messages.create` is called with."""
        arguments: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": [{"role": "user", "content": self.prompt}],
        }
        return arguments if self.system is None else {**arguments, "system": self.system}

    def byte_limit(self) -> int:
        """Return the size beyond which a response cannot be what was asked for."""
        return 65_536 + 512 * self.max_tokens

    def text_hash(self) -> bytes:
        """Return the SHA-256 of what is sent: the system prompt, an empty line, the prompt."""
        text = self.prompt if self.system is None else f"{self.system}\n\n{self.prompt}"
        return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


Finish: TypeAlias = Callable[[Reply | LlmUnavailable], None]
"""Told how a recorded call ended."""
Record: TypeAlias = Callable[[Request], Finish]
"""Told of a call before it is made; if it raises, the call is not made."""


def record_nothing(_: Request) -> Finish:
    """Record no call: for a client whose calls are nobody's business but the caller's."""
    return lambda _: None


@dataclass(slots=True)
class OpenCall:
    """A call on its way: how often it was tried so far, and whom to tell how it ended."""

    finish: Finish
    made: int = 0


@contextmanager
def recorded(record: Record, request: Request) -> Iterator[OpenCall]:
    """Record a call that is made inside; its failure by itself, its reply by whoever has it."""
    call = OpenCall(record(request))
    try:
        yield call
    except LlmUnavailable as exc:
        exc.calls = call.made
        call.finish(exc)
        raise
    except GeneratorExit:
        # Whoever followed the stream has gone: what it cost is never known.
        abandoned = LlmUnavailable("The answer was abandoned.")
        abandoned.calls = call.made
        call.finish(abandoned)
        raise
