"""Expansion: what is sent, what is taken from the answer, and that nothing of it can fail."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from service.llm.messages import open_client
from service.retrieval import expand
from service.retrieval.expand import EXPANSION_MODEL, expand_question, parse_alternatives
from tests.messages_server import (
    Answer,
    MessagesServer,
    cut,
    fail,
    garble,
    hang,
    run_messages_server,
    say,
    send_page,
)

QUESTION = "What stops the garbage collector?"
TWO = ["stop-the-world events", "what pauses memory reclamation"]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with run_messages_server() as running:
        yield running


def ask_with(server: MessagesServer, question: str = QUESTION) -> expand.Expansion:
    return expand_question(open_client("key", server.base_url), question)


def test_the_question_comes_first_and_two_phrasings_follow(server: MessagesServer):
    server.will(say(json.dumps(TWO), input_tokens=20, output_tokens=9))
    expansion = ask_with(server)
    assert expansion.phrasings == (QUESTION, *TWO)
    assert expansion.fallback is None
    assert (expansion.usage.input_tokens, expansion.usage.output_tokens) == (20, 9)
    assert expansion.usage.api_calls == 1
    assert server.requests[0]["model"] == EXPANSION_MODEL == "claude-haiku-4-5-20251001"


def test_only_the_first_500_characters_of_a_question_are_sent(server: MessagesServer):
    server.will(say(json.dumps(TWO)))
    question = "x" * 500 + "SECRET"
    expansion = ask_with(server, question)
    assert "x" * 500 in server.prompts()[0]
    assert "SECRET" not in server.prompts()[0]
    assert expansion.phrasings[0] == question


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('```json\n["a", "b"]\n```', ["a", "b"]),
        ('Here you are:\n["a", "b"]\nI hope [this] helps.', ["a", "b"]),
        ('["a", "b", "c"]', ["a", "b"]),
        ('["  a  ", "", "a"]', ["a"]),
        (f'["{QUESTION.upper()}", "b"]', ["b"]),
        ('["a", 7, null, {"x": 1}, ["y"], "b"]', ["a", "b"]),
        (json.dumps(["y" * 4000]), ["y" * 300]),
        ('{"phrasings": ["a"]}', ["a"]),
        ("no array at all", []),
        ('["broken', []),
        ("[" * 100_000, []),
        ("[]", []),
    ],
)
def test_what_is_taken_from_an_answer(text: str, expected: list[str]):
    assert parse_alternatives(text, QUESTION) == expected


@pytest.mark.parametrize(
    "answer",
    [
        *(fail(status) for status in (400, 401, 429, 500, 529)),
        *(cut(), garble(), send_page()),
        *(say("I cannot help with that."), say("[1, 2]"), say('["unfinished')),
    ],
)
def test_any_failure_leaves_the_question_alone_with_one_warning_and_one_attempt(
    server: MessagesServer, answer: Answer, caplog: pytest.LogCaptureFixture
):
    server.will(answer)
    with caplog.at_level(logging.WARNING, logger="service.retrieval.expand"):
        expansion = ask_with(server)
    assert expansion.phrasings == (QUESTION,)
    assert expansion.fallback is not None
    assert len(server.requests) == 1
    assert len(caplog.records) == 1


def test_a_claude_that_never_answers_is_given_up(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(expand, "DEADLINE_SECONDS", 0.2)
    server.will(hang())
    assert ask_with(server).phrasings == (QUESTION,)


def test_without_a_client_the_question_stays_alone():
    expansion = expand_question(None, QUESTION)
    assert expansion.phrasings == (QUESTION,)
    assert expansion.usage.api_calls == 0


def test_a_log_line_shows_at_most_100_characters(caplog: pytest.LogCaptureFixture):
    expand_question(None, "x" * 100 + "SECRET")
    assert "x" * 100 in caplog.text
    assert "SECRET" not in caplog.text
