"""One question to Claude, one reply; every failure is LlmUnavailable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from service.llm.calls import MessagesClient, Record, Reply, Request, record_nothing, recorded
from service.llm.circuit import Circuits, name_circuit
from service.llm.deadline import Deadline, run_within
from service.llm.failures import retry, unavailable_errors
from service.llm.response import is_sdk, parse_json, read_chunks, read_reply, send

if TYPE_CHECKING:
    from anthropic import Anthropic

PUBLIC_ADDRESS = "https://api.anthropic.com"
DEADLINE_SECONDS = 30.0
ATTEMPTS = 2
CIRCUITS = Circuits()


def open_client(api_key: str, base_url: str | None = None) -> Anthropic:
    """Return a client for Claude that does not retry by itself; both values come from settings."""
    from anthropic import Anthropic

    # Spans could carry prompts to a collector, past the record of what leaves the machine.
    return Anthropic(
        api_key=api_key, base_url=base_url or PUBLIC_ADDRESS, max_retries=0, open_telemetry=False
    )


def ask(
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
) -> Reply:
    """Return Claude's reply within the deadline, retries included; else raise LlmUnavailable."""
    request = Request(model=model, prompt=prompt, max_tokens=max_tokens, system=system)
    with circuits.watch(name_circuit(client)), recorded(record, request) as call:
        end = Deadline.after(deadline)

        def ask_once(number: int) -> Reply:
            call.made = number
            return read_reply(_call(client, request, end=end), calls=number)

        reply = run_within(end, lambda: _translated(ask_once, end=end, attempts=attempts))
        call.finish(reply)
        return reply


def _translated(work: Callable[[int], Reply], *, end: Deadline, attempts: int) -> Reply:
    with unavailable_errors():
        return retry(work, end=end, attempts=attempts)


def _call(client: MessagesClient, request: Request, *, end: Deadline) -> Any:
    if not is_sdk(client):
        return client.messages.create(**request.arguments())
    with send(client, request, end=end) as response:
        return parse_json(b"".join(read_chunks(response, request, end=end)))
