"""From a question to an answer on a real database, with Claude played by a local server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.answering import Answerer
from service.db.egress import list_egress_calls, set_egress_policy
from service.db.engine import owner_transaction, tenant_transaction
from service.db.tenant_settings import write_tenant_settings
from service.llm import open_client
from service.retrieval.request import RetrievalRequest
from service.settings import Settings
from service.synthesis.answer import Answer
from service.synthesis.stream import FinalAnswer
from service.types import EgressCall, NodeDraft, SearchFilters
from tests.conftest import MakeTenant, Upsert
from tests.live_database import SMALL_DIM, LiveDatabase
from tests.messages_server import MessagesServer, fail, run_messages_server, say
from tests.tiny_embedder import TinyEmbedder

QUESTION = "How does work stealing keep processors busy?"
FILLER = " ".join(["It has been so in every version and nobody complains about it."] * 4)
TEXT = f"Work stealing keeps processors busy. An idle one takes half of another's. {FILLER}"
Ask = Callable[..., Answer]


@pytest.fixture
def claude() -> Iterator[MessagesServer]:
    with run_messages_server(say("Idle processors steal [1].")) as running:
        yield running


@pytest.fixture
def embedder() -> TinyEmbedder:
    return TinyEmbedder()


@pytest.fixture
def fill(make_tenant: MakeTenant, upsert: Upsert, embedder: TinyEmbedder) -> Callable[..., None]:
    """fill(tenant, *nodes): a tenant with one document about stealing, and these."""

    def store(tenant: str, *nodes: NodeDraft) -> None:
        make_tenant(tenant)
        drafts = [
            NodeDraft("steal", "section", title=f"Stealing at {tenant}", content=TEXT),
            *nodes,
        ]
        vectors = embedder.embed_documents([f"{QUESTION} {each.title}" for each in drafts])
        upsert(tenant, drafts, embeddings=list(vectors), embedder_version=embedder.version)

    return store


@pytest.fixture
def ask(database: LiveDatabase, embedder: TinyEmbedder, claude: MessagesServer) -> Ask:
    """ask(tenants, ...): the answer to the question of this file."""

    def run(
        *tenants: str,
        text: str = QUESTION,
        groups: tuple[str, ...] = (),
        path: Path | None = None,
        key: str | None = "key",
        **changes: object,
    ) -> Answer:
        answerer = Answerer(
            database.engine,
            Settings(embedding_dim=SMALL_DIM),
            embedder=embedder,
            claude=open_client(key, claude.base_url) if key else None,
        )
        request = RetrievalRequest(
            text,
            tenants or ("acme",),
            filters=SearchFilters(acl_groups=groups),
            changes={"confidence_threshold": 0.0, "min_relevance": 0.0, **changes},
        )
        return answerer.answer(answerer.prepare(request, few_shot_path=path))

    return run


def allow(database: LiveDatabase, tenant: str, policy: str) -> None:
    with owner_transaction(database.admin) as connection:
        set_egress_policy(connection, tenant, policy=policy)


def list_calls(database: LiveDatabase, tenant: str) -> list[EgressCall]:
    with tenant_transaction(database.engine, [tenant]) as connection:
        return list_egress_calls(connection, [tenant])


def example(question: str, answer: str, **fields: Any) -> NodeDraft:
    return NodeDraft(question, "qa_example", title=question, content=answer, **fields)


# --- egress -------------------------------------------------------------------------------------


def test_with_egress_off_nothing_is_sent_and_the_sources_answer(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill("acme")
    answer = ask("acme", multi_query=True)
    assert answer.mode == "extractive"
    assert answer.notice == 'The egress policy of tenant "acme" is off.'
    assert "Work stealing keeps processors busy. [1]" in answer.answer
    assert answer.sources == ("Stealing at acme",)
    assert claude.requests == []
    assert list_calls(database, "acme") == []


def test_each_purpose_is_sent_and_recorded_as_its_policy_allows(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill("acme")
    allow(database, "acme", "expansion")
    assert ask("acme", multi_query=True).mode == "extractive"
    allow(database, "acme", "synthesis")
    assert ask("acme", multi_query=True).mode == "claude"
    allow(database, "acme", "all")
    answer = ask("acme", multi_query=True)
    assert answer.answer == "Idle processors steal [1]."
    assert answer.token_usage.api_calls == 2
    purposes = [call.purpose for call in reversed(list_calls(database, "acme"))]
    assert purposes == ["expansion", "synthesis", "expansion", "synthesis"]
    assert len(claude.requests) == 4
    assert {call.outcome for call in list_calls(database, "acme")} == {"answered"}


def test_a_failed_call_is_recorded_and_leaves_a_degraded_answer(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill("acme")
    allow(database, "acme", "all")
    claude.will(fail(500))
    assert ask("acme").mode == "degraded"
    [call] = list_calls(database, "acme")
    assert (call.outcome, call.attempts) == ("failed", 2)


def test_one_tenants_policy_says_nothing_about_another(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill("acme")
    fill("globex")
    allow(database, "acme", "all")
    assert ask("globex").mode == "extractive"
    both = ask("acme", "globex")
    assert both.mode == "extractive"
    assert "globex" in (both.notice or "")
    assert claude.requests == []
    assert ask("acme").mode == "claude"
    [prompt] = claude.prompts()
    assert "Stealing at acme" in prompt
    assert "globex" not in prompt
    assert list_calls(database, "globex") == []


def test_the_gate_sends_the_question_alone_where_it_may_and_nothing_where_it_may_not(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill("acme")
    answer = ask("acme", confidence_threshold=1.0)
    assert (answer.mode, answer.query_type) == ("gated", "confidence_gated_fallback")
    assert answer.sources == ()
    assert claude.requests == []
    allow(database, "acme", "synthesis")
    assert ask("acme", confidence_threshold=1.0).answer == "Idle processors steal."
    [prompt] = claude.prompts()
    assert QUESTION in prompt
    assert "Stealing at acme" not in prompt


def test_without_a_key_the_policy_does_not_matter(
    ask: Ask, fill: Callable[..., None], database: LiveDatabase
):
    fill("acme")
    allow(database, "acme", "all")
    assert ask("acme", key=None).mode == "extractive"


# --- few-shot -----------------------------------------------------------------------------------


def test_examples_come_from_the_tenants_own_nodes_and_never_ask_the_same(
    ask: Ask, fill: Callable[..., None], claude: MessagesServer, database: LiveDatabase
):
    fill(
        "acme",
        example(QUESTION.upper(), "GOLD-ANSWER"),
        example("How does stealing work?", "It takes half."),
        example("How do groups steal?", "SECRET-OF-A-GROUP", acl=("board",)),
    )
    fill("globex", example("How does stealing work at globex?", "OTHER-TENANT"))
    allow(database, "acme", "all")
    ask("acme")
    ask("acme", groups=("board",))
    first, second = (prompt.split("Context:")[0] for prompt in claude.prompts())
    assert "Question: How does stealing work?\nAnswer: It takes half." in first
    for prompt in (first, second):
        assert "GOLD-ANSWER" not in prompt
        assert "OTHER-TENANT" not in prompt
    assert "SECRET-OF-A-GROUP" not in first
    assert "SECRET-OF-A-GROUP" in second


def test_a_file_of_examples_stands_in_for_the_tenants_own(
    ask: Ask,
    fill: Callable[..., None],
    claude: MessagesServer,
    database: LiveDatabase,
    tmp_path: Path,
):
    fill("acme", example("How does stealing work?", "OF-THE-TENANT"))
    allow(database, "acme", "all")
    path = tmp_path / "examples.json"
    rows = [{"query": "What is theft?", "ground_truth": "Taking."}]
    path.write_text(json.dumps([*rows, {"question": f"{QUESTION} ", "answer": "GOLD-ANSWER"}]))
    ask("acme", path=path)
    shown = claude.prompts()[0].split("Context:")[0]
    assert "=== Example 1 ===\nQuestion: What is theft?\nAnswer: Taking." in shown
    assert "OF-THE-TENANT" not in shown
    assert "GOLD-ANSWER" not in shown


# --- the whole ----------------------------------------------------------------------------------


def test_the_tenants_own_budget_limits_the_context(
    fill: Callable[..., None], database: LiveDatabase, embedder: TinyEmbedder
):
    fill("acme")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        write_tenant_settings(connection, "acme", settings={"context_token_budget": 40})
    answerer = Answerer(database.engine, Settings(embedding_dim=SMALL_DIM), embedder=embedder)
    changes = {"confidence_threshold": 0.0, "min_relevance": 0.0}
    ready = answerer.prepare(RetrievalRequest(QUESTION, ("acme",), changes=changes))
    assert ready.pack is not None
    assert ready.pack.budget == 40
    assert ready.pack.tokens <= 40


def test_a_streamed_answer_ends_with_the_same_answer(
    fill: Callable[..., None],
    database: LiveDatabase,
    embedder: TinyEmbedder,
    claude: MessagesServer,
):
    fill("acme")
    allow(database, "acme", "synthesis")
    answerer = Answerer(
        database.engine,
        Settings(embedding_dim=SMALL_DIM),
        embedder=embedder,
        claude=open_client("key", claude.base_url),
    )
    changes = {"confidence_threshold": 0.0, "min_relevance": 0.0, "trace": True}
    ready = answerer.prepare(RetrievalRequest(QUESTION, ("acme",), changes=changes))
    *_, final = answerer.stream(ready)
    assert isinstance(final, FinalAnswer)
    assert final.answer.answer == answerer.answer(ready).answer == "Idle processors steal [1]."
    assert final.answer.citations[0].title == "Stealing at acme"
    trace = json.loads(json.dumps(ready.to_trace()))
    assert {"retrieval", "packing"} == set(trace)
    assert trace["packing"]["items"]
