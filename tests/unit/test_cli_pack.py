"""contextforge pack, on a real database with the real model, and Claude's count by a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.errors import LlmUnavailable
from service.llm import open_client
from service.llm.counting import count_input_tokens
from service.tokens import count_tokens
from tests.command_line import Command
from tests.conftest import MakeDatabase
from tests.messages_server import (
    Answer,
    MessagesServer,
    count,
    drip,
    fail,
    garble,
    hang,
    run_messages_server,
    send_page,
)

QUESTION = "How does work stealing keep processors busy?"
STEALING = (
    "Work stealing keeps all processors busy. An idle processor looks at the queues of the others "
    "and takes half of the work it finds there. Only when every queue is empty does it go to "
    "sleep, so that no processor waits while another has more to do than it can handle."
)
PAGES = {
    "scheduler.md": f"# Scheduler\n\n## Work stealing\n\n{STEALING}\n",
    "mirror.md": f"# Mirror\n\n## Work stealing\n\n{STEALING} Mirrored once a day.\n",
    "garden.md": "# Garden\n\n## Beans\n\nBeans are sown in May, when the soil is warm. They need "
    "a pole to climb, water in dry weeks, and somebody who picks them before they grow hard. In "
    "October the poles go back into the shed and stay there until spring.\n",
}


@pytest.fixture
def command(
    command_on: Callable[..., Command], make_database: MakeDatabase, tmp_path: Path
) -> Command:
    """command(*arguments): on a database where tenant acme has three pages, globex one."""
    run = command_on(make_database(embedding_dim=384), embedding_dim=384)
    for name, page in PAGES.items():
        (tmp_path / name).write_text(page)
    for tenant in ("acme", "globex"):
        assert run("tenants", "create", tenant).code == 0
    assert run("ingest", *PAGES, "--tenant", "acme").code == 0
    assert run("ingest", "garden.md", "--tenant", "globex").code == 0
    return run


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessagesServer]:
    with run_messages_server(count(123)) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        yield server


def test_the_context_is_printed_and_its_size_on_stderr(command: Command):
    result = command("pack", QUESTION, "--tenant", "acme")
    assert result.code == 0
    assert result.out.startswith("[1] Scheduler > Work stealing\nWork stealing keeps")
    assert "Mirrored" not in result.out
    assert result.err == f"{count_tokens(result.out)} of 8000 tokens, 2 blocks\n"


def test_a_budget_of_the_call_stands_before_the_settings(command: Command):
    packed = command("pack", QUESTION, "--tenant", "acme", "--budget", "70", "--json").json
    assert packed["tokens"] == count_tokens(packed["text"]) <= 70
    assert packed["budget"] == 70
    assert [block["number"] for block in packed["blocks"]] == [1]
    reasons = {item["title"]: item["reason"] for item in packed["trace"]["items"]}
    assert reasons == {"Scheduler": None, "Mirror": "near_duplicate", "Garden": "budget"}


def test_explain_draws_a_bar_and_says_why_each_node_is_out(
    command: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    shown = command("pack", QUESTION, "--tenant", "acme", "--budget", "70", "--explain").out
    bar, *rows = shown.splitlines()
    assert bar.startswith("████")
    assert bar.endswith("of 70 tokens, 1 block")
    [kept] = [row for row in rows if "Scheduler" in row]
    assert kept.startswith(" [1] ")
    [copy] = [row for row in rows if "Mirror" in row]
    assert "near_duplicate" in copy
    [late] = [row for row in rows if "Garden" in row]
    assert "tokens too many" in late


def test_a_tenant_with_nothing_to_say_gives_an_empty_context(command: Command):
    assert command("tenants", "create", "empty").code == 0
    result = command("pack", QUESTION, "--tenant", "empty")
    assert (result.code, result.out, result.err) == (0, "", "0 of 8000 tokens, 0 blocks\n")


def test_only_the_named_tenants_are_packed(command: Command):
    packed = command("pack", QUESTION, "--tenant", "globex", "--json").json
    assert {block["tenant_id"] for block in packed["blocks"]} == {"globex"}
    assert {item["title"] for item in packed["trace"]["items"]} == {"Garden"}
    assert command("pack", QUESTION, "--tenant", "nowhere").code == 1


@pytest.mark.parametrize("budget", ["0", "many"])
def test_a_budget_that_is_none_is_refused(command: Command, budget: str):
    assert command("pack", QUESTION, "--tenant", "acme", "--budget", budget).code == 2


def test_claude_counts_only_where_the_egress_policy_allows_it(
    command: Command, claude: MessagesServer
):
    refused = command("pack", QUESTION, "--tenant", "acme", "--verify-tokens")
    assert (refused.code, claude.requests) == (1, [])
    assert "egress policy" in refused.err

    command("egress", "set", "synthesis", "--tenant", "acme")
    packed = command("pack", QUESTION, "--tenant", "acme", "--verify-tokens", "--json").json
    assert packed["claude_tokens"] == 123
    [request] = claude.requests
    assert request["messages"] == [{"role": "user", "content": packed["text"]}]
    [call] = command("egress", "show", "--tenant", "acme", "--json").json["calls"]
    assert (call["purpose"], call["outcome"], call["input_tokens"]) == (
        "synthesis",
        "answered",
        123,
    )
    printed = command("pack", QUESTION, "--tenant", "acme", "--verify-tokens")
    share = 123 / packed["tokens"] - 1
    assert f"Claude counts 123 tokens, with the frame of a message: {share:+.1%}." in printed.err


def test_without_a_key_claude_cannot_count(command: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    refused = command("pack", QUESTION, "--tenant", "acme", "--verify-tokens")
    assert (refused.code, refused.out) == (2, "")
    assert "ANTHROPIC_API_KEY" in refused.err


@pytest.mark.parametrize(
    "answer", [fail(500), fail(401), hang(), drip(), garble(), send_page(), count(None)]
)
def test_a_count_that_fails_is_an_error_and_not_a_number(answer: Answer):
    with run_messages_server(answer) as server, pytest.raises(LlmUnavailable):
        count_input_tokens(open_client("key", server.base_url), model="m", text="x", deadline=0.5)
