"""Claude as the writer of answers, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from service.llm.calls import MessagesClient, Record, Reply, record_nothing
from service.llm.messages import DEADLINE_SECONDS, ask
from service.llm.stream import stream
from service.synthesis.prompt import Prompt

NO_KEY = "There is no API key for Claude."


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes an answer; a refusal says why nobody may be asked."""

    client: MessagesClient | None = field(default=None, repr=False)
    model: str = ""
    max_tokens: int = 1024
    deadline: float = DEADLINE_SECONDS
    record: Record = record_nothing
    forbidden: str | None = None

    @property
    def refusal(self) -> str | None:
        """Why Claude is not asked; None where it is."""
        return NO_KEY if self.client is None else self.forbidden

    def write(self, prompt: Prompt) -> Reply:
        """Return Claude's answer to a prompt."""
        assert self.client is not None, "ask for the refusal first"
        return ask(
            self.client,
            model=self.model,
            prompt=prompt.text,
            system=prompt.system,
            max_tokens=self.max_tokens,
            deadline=self.deadline,
            record=self.record,
        )

    def write_stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Yield Claude's answer as it is written, then the whole."""
        assert self.client is not None, "ask for the refusal first"
        return stream(
            self.client,
            model=self.model,
            prompt=prompt.text,
            system=prompt.system,
            max_tokens=self.max_tokens,
            deadline=self.deadline,
            record=self.record,
        )
