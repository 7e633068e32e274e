"""What an agent answers: with citations and a record, by examples, by methods that are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service import KnowledgeGraphAgent
from service.db.egress import list_egress_calls
from service.db.engine import tenant_transaction
from service.settings import Settings
from service.types import NodeDraft
from tests.candidates import LONG_TEXT, AxisEmbedder, with_cosine
from tests.conftest import MakeTenant, Upsert
from tests.live_database import SMALL_DIM, LiveDatabase

OpenAgent = Callable[..., KnowledgeGraphAgent]
EMBEDDER = AxisEmbedder()


@pytest.fixture
def open_agent(
    database: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert
) -> Iterator[OpenAgent]:
    """open_agent(**options): an agent of tenant acme, which has one article about parcels."""
    make_tenant("acme")
    upsert(
        "acme",
        [
            NodeDraft("a", "article", title="Alpha", content="whole alpha", searchable=False),
            NodeDraft(
                "a#0", "section", title="Alpha", parent="a", content=f"alpha parcel {LONG_TEXT}"
            ),
        ],
        embeddings=[None, with_cosine(0.9, axis=1)],
        embedder_version=EMBEDDER.version,
    )
    with ExitStack() as stack:

        def create(**options: Any) -> KnowledgeGraphAgent:
            given = {"tenant_id": "acme", "embedder": EMBEDDER, **options}
            given.setdefault("settings", Settings(embedding_dim=SMALL_DIM))
            return stack.enter_context(KnowledgeGraphAgent(database.service_url, **given))

        yield create


@pytest.fixture
def agent(open_agent: OpenAgent) -> KnowledgeGraphAgent:
    return open_agent()


def claude_saying(text: str) -> Any:
    """A stand-in for a Claude client that remembers what it was asked."""
    asked: list[dict[str, Any]] = []

    def create(**request: Any) -> Any:
        asked.append(request)
        return SimpleNamespace(
            content=[SimpleNamespace(text=text)],
            usage=SimpleNamespace(input_tokens=10, output_tokens=20),
        )

    return SimpleNamespace(messages=SimpleNamespace(create=create), asked=asked)


def test_an_answer_of_claudes_has_citations_facts_and_a_record_of_the_call(
    agent: KnowledgeGraphAgent, database: LiveDatabase
):
    agent.claude = claude_saying("It is in part 0 [1], not in [99].")
    response = agent.query("parcel")
    assert response["answer"] == "It is in part 0 [1], not in."
    assert response["mode"] == "claude"
    [citation] = response["citations"]
    assert citation["number"] == 1
    assert citation["title"] in response["sources"]
    assert all(node_id > 0 for node_id in citation["node_ids"])
    assert response["facts"]
    assert response["token_usage"] == {"input_tokens": 10, "output_tokens": 20, "api_calls": 1}
    with tenant_transaction(database.engine, ["acme"]) as connection:
        [call] = list_egress_calls(connection, ["acme"])
    assert (call.purpose, call.consent, call.outcome) == ("synthesis", "key", "answered")


def test_examples_of_a_file_reach_claude_but_never_the_asked_question(
    open_agent: OpenAgent, tmp_path: Path
):
    path = tmp_path / "questions.jsonl"
    path.write_text(
        '{"query": "PARCEL?", "ground_truth": "GOLD"}\n{"query": "A box?", "answer": "Yes [1]."}\n'
    )
    for flag, expected in ((True, True), (False, False)):
        agent = open_agent(few_shot_path=str(path), enable_fewshot=flag)
        agent.claude = claude_saying("Yes [1].")
        agent.query("parcel")
        prompt = agent.claude.asked[0]["messages"][0]["content"]  # type: ignore[union-attr]
        assert ("=== Example 1 ===\nQuestion: A box?\nAnswer: Yes [1]." in prompt) == expected
        assert "GOLD" not in prompt


def test_methods_that_write_may_be_replaced(agent: KnowledgeGraphAgent):
    agent._build_synthesis_context = lambda question, results: "My context."  # type: ignore[method-assign]
    agent.claude = claude_saying("By your context [1].")
    assert agent.query("parcel")["answer"] == "By your context [1]."
    assert "My context." in agent.claude.asked[0]["messages"][0]["content"]  # type: ignore[union-attr]
    agent._synthesize_answer = lambda question, context: "Mine."  # type: ignore[method-assign]
    response = agent.query("parcel")
    assert (response["answer"], response["mode"], response["citations"]) == ("Mine.", None, [])


def test_results_without_text_are_answered_from_their_articles(agent: KnowledgeGraphAgent):
    found = [{"title": "Alpha", "similarity": 0.9, "node_type": "other"}]
    agent.semantic_search = lambda query, top_k=5: found  # type: ignore[method-assign]
    agent.claude = claude_saying("Yes [1].")
    assert agent.query("parcel")["mode"] == "claude"
    assert "alpha parcel" in agent.claude.asked[0]["messages"][0]["content"]  # type: ignore[union-attr]
