"""contextforge search, on a real database with the real model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_nodes
from service.embedding import load_embedder
from service.types import NodeDraft
from tests.command_line import Command
from tests.conftest import MakeDatabase

MODEL_DIM = 384
TEXTS = {
    "Tracking": "Every parcel has a number. With it you can see on our page where your package is "
    "at any time of the day, and when the driver will ring at your door. Keep the number until "
    "the parcel has arrived, because our staff will ask you for it when you call.",
    "Payment": "An invoice is paid by card or by bank transfer within thirty days. Reminders are "
    "sent by letter after that, and cost a small fee that is added to the next invoice you get.",
    "Stub": "See tracking.",
}


@pytest.fixture
def command(command_on: Callable[..., Command], make_database: MakeDatabase) -> Command:
    """command(*arguments): on a database whose tenants acme and globex hold a few articles."""
    database = make_database(embedding_dim=MODEL_DIM)
    embedder = load_embedder()
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme", "globex"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
    for tenant, titles in (("acme", tuple(TEXTS)), ("globex", ("Payment",))):
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[NodeDraft(title, "article", title, "", TEXTS[title]) for title in titles],
                embeddings=list(embedder.embed_documents([TEXTS[title] for title in titles])),
                embedder_version=embedder.version,
            )
    return command_on(database, embedding_dim=MODEL_DIM)


def test_the_best_node_comes_first_with_a_bar(command: Command):
    result = command("search", "where is my package", "--tenant", "acme")
    assert result.code == 0
    lines = [line for line in result.out.splitlines() if "█" in line]
    assert "Tracking" in lines[0]
    assert "Stub" not in result.out


def test_json_has_nodes_with_scores_and_the_trace_when_explained(command: Command):
    asked = ("search", "where is my package", "--tenant", "acme", "--json")
    plain = command(*asked).json
    assert plain["nodes"][0]["title"] == "Tracking"
    assert plain["confidence"] == max(node["confidence"] for node in plain["nodes"])
    assert "trace" not in plain
    explained = command(*asked, "--explain").json
    assert [step["step"] for step in explained["trace"]["steps"]][:2] == ["search", "gate"]


def test_explain_says_why_a_node_left(command: Command):
    result = command("search", "where is my package", "--tenant", "acme", "--explain")
    assert "quality 0.000 is below 0.3" in result.out
    assert "search: " in result.out


def test_an_unrelated_question_is_shown_with_a_word_of_doubt(command: Command):
    result = command("search", "volcanoes of Iceland", "--tenant", "acme")
    assert result.code == 0
    assert "no context would be made of this" in result.err


def test_only_the_named_tenants_are_searched(command: Command):
    one = command("search", "parcel number", "--tenant", "globex", "--json").json
    assert [node["title"] for node in one["nodes"]] == ["Payment"]
    none = command("search", "parcel", "--tenant", "nobody")
    assert none.code == 1
    assert "does not exist" in none.err


def test_filters_narrow_a_search(command: Command):
    asked = ("search", "parcel", "--tenant", "acme", "--json")
    assert command(*asked, "--type", "field").json["nodes"] == []
    assert command(*asked, "--dataset", "elsewhere").json["nodes"] == []
    assert len(command(*asked, "--max-results", "1").json["nodes"]) == 1
