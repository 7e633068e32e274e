"""The same answer as events: what was found, the text as it is written, the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from service.embedding import Embedder
from service.errors import Forbidden, LlmUnavailable
from service.llm.calls import Reply
from service.synthesis.answer import (
    Answer,
    Question,
    Task,
    finish_failed,
    finish_without,
    finish_written,
    start_task,
)
from service.synthesis.check import Checker, cut_pieces
from service.synthesis.citations import Citation
from service.synthesis.claude import Writer
from service.synthesis.context import Source


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The sources, before anything is written."""

    event: ClassVar[str] = "search_results"
    sources: tuple[Source, ...]
    query_type: str


@dataclass(frozen=True, slots=True)
class MessageDelta:
    """A piece of the answer; the pieces may differ in spacing from the whole at the end."""

    event: ClassVar[str] = "message"
    text: str


@dataclass(frozen=True, slots=True)
class CitationFound:
    """A source that the answer has cited for the first time."""

    event: ClassVar[str] = "citation"
    citation: Citation


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The whole answer; it counts, where an error came before it too."""

    event: ClassVar[str] = "final_answer"
    answer: Answer


@dataclass(frozen=True, slots=True)
class StreamError:
    """What failed on the way; what was written so far is void."""

    event: ClassVar[str] = "error"
    code: str
    message: str
    hint: str | None = None


AnswerEvent = SearchResults | MessageDelta | CitationFound | FinalAnswer | StreamError


def describe_event(event: AnswerEvent) -> dict[str, Any]:
    """Return the data of an event as plain values; an answer is the data itself."""
    return event.answer.to_json() if isinstance(event, FinalAnswer) else asdict(event)


def stream_answer(
    question: Question, *, writer: Writer, embedder: Embedder
) -> Iterator[AnswerEvent]:
    """Yield the events of one answer; the last is always its final_answer."""
    task = start_task(question)
    yield SearchResults(task.context.sources, question.query_type)
    refusal = writer.refusal
    if refusal is None:
        written = _Written(task, writer)
        try:
            yield from written.follow()
            return
        except Forbidden as exc:  # the policy was changed a moment ago
            refusal = exc.message
        except LlmUnavailable as exc:
            yield StreamError(exc.code, exc.message, exc.hint)
            yield FinalAnswer(finish_failed(task, exc, embedder=embedder, reply=written.reply))
            return
    answer = finish_without(task, embedder=embedder, notice=refusal)
    yield MessageDelta(answer.answer)
    yield from map(CitationFound, answer.citations)
    yield FinalAnswer(answer)


class _Written:
    """What Claude writes, followed piece by piece; `reply` is the whole once it is there."""

    def __init__(self, task: Task, writer: Writer) -> None:
        self._task = task
        self._writer = writer
        self.reply: Reply | None = None

    def follow(self) -> Iterator[AnswerEvent]:
        """Yield what is written as it has been checked, then the answer."""
        yield from _check_pieces(self._read_deltas(), self._task.checker)
        if self.reply is None:
            raise LlmUnavailable("Claude's answer broke off in the middle.")
        yield FinalAnswer(finish_written(self._task, self.reply, model=self._writer.model))

    def _read_deltas(self) -> Iterator[str]:
        for item in self._writer.write_stream(self._task.prompt):
            if isinstance(item, Reply):
                self.reply = item
            else:
                yield item


def _check_pieces(deltas: Iterator[str], checker: Checker) -> Iterator[AnswerEvent]:
    cited: set[int] = set()
    for piece in cut_pieces(deltas):
        checked = checker.check(piece)
        if checked.text:
            yield MessageDelta(checked.text + piece[len(piece.rstrip()) :])
        for citation in checked.citations:
            if citation.number not in cited:
                cited.add(citation.number)
                yield CitationFound(citation)
