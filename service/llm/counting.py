"""How long a text is by Claude's own count; nothing is written, but the text leaves the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.errors import LlmUnavailable
from service.llm.calls import Record, Reply, Request, record_nothing, recorded
from service.llm.deadline import Deadline, run_within
from service.llm.failures import unavailable_errors

if TYPE_CHECKING:
    from anthropic import Anthropic

DEADLINE_SECONDS = 30.0


def count_input_tokens(
    client: Anthropic,
    *,
    model: str,
    text: str,
    deadline: float = DEADLINE_SECONDS,
    record: Record = record_nothing,
) -> int:
    """Return the input tokens of a message with this text; else raise LlmUnavailable."""
    request = Request(model=model, prompt=text, max_tokens=1)
    with recorded(record, request) as call:
        call.made = 1
        end = Deadline.after(deadline)
        tokens = run_within(end, lambda: _count(client, request, end=end))
        call.finish(Reply("", input_tokens=tokens))
        return tokens


def _count(client: Anthropic, request: Request, *, end: Deadline) -> int:
    with unavailable_errors():
        once = client.with_options(max_retries=0, timeout=end.remaining())
        counted = once.messages.count_tokens(
            model=request.model, messages=[{"role": "user", "content": request.prompt}]
        )
        # A proxy may answer with anything: the package does not check what it is sent.
        tokens: object = getattr(counted, "input_tokens", None)
    if not isinstance(tokens, int):
        raise LlmUnavailable("Claude's answer has no count in it.")
    return tokens
