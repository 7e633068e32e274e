"""The use case: a question and its context become an answer with sources, whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from service.embedding import Embedder
from service.errors import Forbidden, LlmUnavailable
from service.llm.calls import Reply
from service.retrieval.expand import Usage
from service.synthesis.check import CheckedText, Checker
from service.synthesis.citations import Citation
from service.synthesis.claude import Writer
from service.synthesis.context import Context, Source, clean_context
from service.synthesis.extractive import extract_answer
from service.synthesis.fewshot import Example
from service.synthesis.names import find_entities, find_facts
from service.synthesis.prompt import Prompt, build_minimal_prompt, build_prompt
from service.types import Vector

Mode = Literal["claude", "extractive", "gated", "degraded"]
NOTHING_FOUND = "Nothing relevant to the question was found."


@dataclass(frozen=True, slots=True)
class Question:
    """A question with everything its answer is made from; no sources where the gate fired."""

    text: str
    sources: tuple[Source, ...]
    query_type: str
    statement: str = ""
    examples: Sequence[Example] = ()
    usage: Usage = field(default_factory=Usage)
    query_vector: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, what it rests on, what it cost, and how it was made.

    mode: claude (written from the sources), extractive (their own sentences), gated (nothing
    relevant was found), degraded (Claude failed). notice says why it is not claude.
    """

    answer: str
    sources: tuple[str, ...]
    entities: tuple[str, ...]
    facts: tuple[str, ...]
    cypher_query: str
    query_type: str
    token_usage: Usage
    citations: tuple[Citation, ...]
    mode: Mode
    notice: str | None = None
    model: str | None = None
    removed_citations: int = 0
    removed_links: int = 0
    removed_words: int = 0
    withheld_passages: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return asdict(self)


def answer_question(question: Question, *, writer: Writer, embedder: Embedder) -> Answer:
    """Let Claude write where it may; else answer by the sources' own sentences."""
    task = start_task(question)
    if writer.refusal is not None:
        return finish_without(task, embedder=embedder, notice=writer.refusal)
    reply = None
    try:
        reply = writer.write(task.prompt)
        return finish_written(task, reply, model=writer.model)
    except Forbidden as exc:  # the policy was changed a moment ago
        return finish_without(task, embedder=embedder, notice=exc.message)
    except LlmUnavailable as exc:
        return finish_failed(task, exc, embedder=embedder, reply=reply)


@dataclass(frozen=True, slots=True)
class Task:
    """A question on its way: its cleaned context and the prompt made of it."""

    question: Question
    context: Context
    prompt: Prompt

    @property
    def gated(self) -> bool:
        """Whether there is nothing to answer from."""
        return not self.context.sources

    @property
    def checker(self) -> Checker:
        """What checks the answer."""
        return Checker(self.question.text, self.context, self.prompt)


def start_task(question: Question) -> Task:
    """Clean the context and write the prompt."""
    context = clean_context(question.sources)
    if not context.sources:
        return Task(question, context, build_minimal_prompt(question.text))
    prompt = build_prompt(question.text, context, examples=question.examples)
    return Task(question, context, prompt)


def finish_written(task: Task, reply: Reply, *, model: str) -> Answer:
    """Return what Claude wrote, checked; LlmUnavailable where nothing of it may be shown."""
    checked = task.checker.check(reply.text)
    if not checked.text:
        raise LlmUnavailable("Claude's answer has nothing in it that may be shown.")
    written = _make_answer(task, checked, mode="gated" if task.gated else "claude")
    notice = f"{NOTHING_FOUND} Claude answered from its own knowledge." if task.gated else None
    if reply.stop_reason == "max_tokens":
        notice = "The answer was cut off at SYNTHESIS_MAX_TOKENS."
    return replace(
        written, token_usage=task.question.usage.plus(_count(reply)), model=model, notice=notice
    )


def finish_without(task: Task, *, embedder: Embedder, notice: str) -> Answer:
    """Return an answer that Claude had no part in, and say why."""
    question = task.question
    if task.gated:
        return replace(_make_answer(task, CheckedText(NOTHING_FOUND), mode="gated"), notice=notice)
    extract = extract_answer(
        question.text, task.context, embedder=embedder, query_vector=question.query_vector
    )
    if not extract.text:  # all there was has been withheld
        extract = CheckedText(NOTHING_FOUND)
    return replace(_make_answer(task, extract, mode="extractive"), notice=notice)


def finish_failed(
    task: Task, error: LlmUnavailable, *, embedder: Embedder, reply: Reply | None = None
) -> Answer:
    """Return the same, marked as what is left after a failure; a discarded reply was paid for."""
    answer = finish_without(task, embedder=embedder, notice=error.message)
    spent = Usage(api_calls=error.calls) if reply is None else _count(reply)
    return replace(answer, mode="degraded", token_usage=task.question.usage.plus(spent))


def _count(reply: Reply) -> Usage:
    return Usage(reply.input_tokens, reply.output_tokens, reply.calls)


def _make_answer(task: Task, checked: CheckedText, *, mode: Mode) -> Answer:
    return Answer(
        answer=checked.text,
        sources=task.context.titles(),
        entities=() if task.gated else find_entities(checked.text, task.context),
        facts=find_facts(checked.citations),
        cypher_query=task.question.statement,
        query_type=task.question.query_type,
        token_usage=task.question.usage,
        citations=checked.citations,
        mode=mode,
        removed_citations=checked.removed_citations,
        removed_links=checked.removed_links,
        removed_words=checked.removed_words,
        withheld_passages=len(task.context.withheld),
    )
