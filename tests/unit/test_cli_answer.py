"""contextforge answer and contextforge egress, with the shipped embedder and a local server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line import Command
from tests.conftest import MakeDatabase
from tests.messages_server import MessagesServer, fail, run_messages_server, say

QUESTION = "How does work stealing keep processors busy?"
PAGE = """# Scheduler

## Work stealing

Work stealing keeps all processors busy. An idle processor looks at the queues of the others and
takes half of the work it finds there. Only when every queue is empty does it go to sleep, so that
no processor waits while another one has more to do than it can handle at the moment.
"""


@pytest.fixture
def command(
    command_on: Callable[..., Command], make_database: MakeDatabase, tmp_path: Path
) -> Command:
    """command(*arguments): on a database where tenant acme has one page; globex has none."""
    run = command_on(make_database(embedding_dim=384), embedding_dim=384)
    (tmp_path / "scheduler.md").write_text(PAGE)
    for tenant in ("acme", "globex"):
        assert run("tenants", "create", tenant).code == 0
    assert run("ingest", "scheduler.md", "--tenant", "acme").code == 0
    return run


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesServer]:
    with run_messages_server(say("It takes half of another's work [1].")) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        yield server


def test_without_a_key_the_page_answers_for_itself(command: Command):
    result = command("answer", QUESTION, "--tenant", "acme")
    assert result.code == 0
    assert "Work stealing keeps all processors busy. [1]" in result.out
    assert "[1] Scheduler, Work stealing" in result.out
    assert result.err == "extractive: There is no API key for Claude.\n"


def test_nothing_is_sent_until_the_policy_allows_it_and_then_it_is_recorded(
    command: Command, claude: MessagesServer
):
    refused = command("answer", QUESTION, "--tenant", "acme", "--json").json
    assert (refused["mode"], claude.requests) == ("extractive", [])

    assert command("egress", "set", "synthesis", "--tenant", "acme").out == (
        "Policy of acme: synthesis\n"
    )
    answer = command("answer", QUESTION, "--tenant", "acme", "--json", "--trace").json
    assert answer["answer"] == "It takes half of another's work [1]."
    assert answer["mode"] == "claude"
    assert answer["citations"][0]["title"] == "Scheduler"
    assert answer["trace"]["retrieval"]["steps"]
    assert answer["trace"]["packing"]["items"]

    shown = command("egress", "show", "--tenant", "acme", "--json").json
    assert shown["policy"] == "synthesis"
    [call] = shown["calls"]
    assert (call["purpose"], call["outcome"], call["input_tokens"]) == ("synthesis", "answered", 11)
    table = command("egress", "show", "--tenant", "acme").out
    assert "Policy of acme: synthesis" in table
    assert "11 + 7" in table
    assert call["text_sha256"][:8] in table
    assert command("egress", "show", "--tenant", "globex", "--json").json["calls"] == []


def test_a_streamed_answer_is_printed_once_and_its_events_as_lines_of_json(
    command: Command, claude: MessagesServer
):
    command("egress", "set", "all", "--tenant", "acme")
    printed = command("answer", QUESTION, "--tenant", "acme", "--stream")
    assert printed.out.startswith("It takes half of another's work [1].\n\nSources:\n  [1] ")
    assert printed.err == "claude\n"
    lines = command("answer", QUESTION, "--tenant", "acme", "--stream", "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == [
        "search_results",
        "message",
        "citation",
        "final_answer",
    ]
    assert events[-1]["data"]["mode"] == "claude"


def test_a_stream_that_fails_says_so_and_falls_back(command: Command, claude: MessagesServer):
    command("egress", "set", "all", "--tenant", "acme")
    claude.will(fail(400))
    result = command("answer", QUESTION, "--tenant", "acme", "--stream")
    assert result.code == 0
    assert "[Claude answered with status 400. What stands above is void.]" in result.out
    assert "Work stealing keeps all processors busy. [1]" in result.out
    assert result.err == "degraded: Claude answered with status 400.\n"


def test_a_question_about_something_else_finds_nothing(command: Command):
    result = command("answer", "Who won the football cup in 1974?", "--tenant", "acme")
    assert result.out == "Nothing relevant to the question was found.\n"
    assert result.err.startswith("gated: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("answer", QUESTION, "--tenant", "nobody"), 'tenant "nobody" does not exist'),
        (("answer", " ", "--tenant", "acme"), "question is empty"),
        (("answer", QUESTION, "--tenant", "acme", "--few-shot", "no.json"), "cannot be read"),
        (("egress", "set", "some", "--tenant", "acme"), "off, expansion, synthesis, all"),
        (("egress", "show", "--tenant", "nobody"), 'tenant "nobody" does not exist'),
    ],
)
def test_what_cannot_work_is_one_line_on_stderr(
    command: Command, arguments: tuple[str, ...], words: str
):
    result = command(*arguments)
    assert (result.code, result.out) == (1, "")
    assert words in result.err
    assert result.err.count("\n") == 1
