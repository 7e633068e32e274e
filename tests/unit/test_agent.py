"""KnowledgeGraphAgent: its contract, its seams, its flags, and that Claude can never break it."""

from __future__ import annotations

import inspect
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

import service
from service import KnowledgeGraphAgent
from service.db.engine import tenant_transaction
from service.db.nodes import upsert_nodes
from service.errors import DatabaseUnavailable, ServiceError, SettingsError
from service.settings import Settings
from service.types import NodeDraft, Vector
from tests.candidates import LONG_TEXT, AxisEmbedder, with_cosine
from tests.conftest import MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.messages_server import Answer, fail, garble, run_messages_server, say

OpenAgent = Callable[..., KnowledgeGraphAgent]
EMBEDDER = AxisEmbedder()


@pytest.fixture
def filled(make_tenant: MakeTenant, upsert: Upsert) -> str:
    """A tenant with two articles of two sections, one article of one stub, and a far one."""
    tenant = make_tenant("acme")
    nodes: list[NodeDraft] = []
    vectors: list[Vector | None] = []
    for name, cosine in (("alpha", 0.9), ("beta", 0.8)):
        nodes.append(
            NodeDraft(name, "article", title=name.title(), content="whole", searchable=False)
        )
        vectors.append(None)
        for place in range(2):
            nodes.append(
                NodeDraft(
                    f"{name}#{place}",
                    "section",
                    title=name.title(),
                    header=f"Part {place}",
                    content=f"{name} parcel part {place} {LONG_TEXT}",
                    parent=name,
                    order_index=place,
                )
            )
            vectors.append(with_cosine(cosine - place / 20, axis=1 + len(nodes)))
    nodes.append(NodeDraft("stub", "article", title="Stub", content="See also parcel."))
    vectors.append(with_cosine(0.75, axis=1))
    upsert(tenant, nodes, embeddings=vectors, embedder_version=EMBEDDER.version)
    return tenant


@pytest.fixture
def open_agent(database: LiveDatabase) -> Iterator[OpenAgent]:
    """open_agent(**options): an agent of tenant acme on this test's database."""
    with ExitStack() as stack:

        def create(**options: Any) -> KnowledgeGraphAgent:
            given = {"tenant_id": "acme", "embedder": EMBEDDER, **options}
            given.setdefault("settings", Settings(embedding_dim=8))
            return stack.enter_context(KnowledgeGraphAgent(database.service_url, **given))

        yield create


@pytest.fixture
def agent(open_agent: OpenAgent, filled: str) -> KnowledgeGraphAgent:
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


def searched(agent: KnowledgeGraphAgent, lists: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Replace semantic_search; returns the queries it is asked, as they come."""
    asked: list[str] = []

    def search(query: str, top_k: int = 5) -> list[dict[str, Any]]:
        asked.append(query)
        return lists.get(query, lists.get("*", []))

    agent.semantic_search = search  # type: ignore[method-assign]
    return asked


# --- the contract ------------------------------------------------------------------------------


def test_the_constructor_takes_these_in_this_order_with_these_defaults():
    parameters = inspect.signature(KnowledgeGraphAgent.__init__).parameters
    positional = [
        (name, parameter.default)
        for name, parameter in parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and name != "self"
    ]
    assert positional[0][0] == "db_path"
    assert positional[1:] == [
        ("anthropic_api_key", None),
        ("read_only", True),
        ("use_enhancements", True),
        ("few_shot_path", None),
        ("enable_reranker", True),
        ("enable_multidoc", True),
        ("enable_fewshot", True),
        ("synthesis_model", None),
        ("cypher_pack_path", None),
        ("enable_multi_query", False),
        ("enable_cross_encoder", False),
    ]
    numbers = {"num_docs": 5, "max_sections": 3, "min_relevance": 0.7, "alpha": 0.7, "beta": 0.3}
    assert {name: parameters[name].default for name in numbers} == numbers


def test_the_constants_of_the_class():
    assert KnowledgeGraphAgent.CONTENT_QUALITY_THRESHOLD == 0.3
    assert KnowledgeGraphAgent.CONTEXT_CONFIDENCE_THRESHOLD == 0.5
    assert "the" in KnowledgeGraphAgent.STOP_WORDS
    assert "photosynthesis" not in KnowledgeGraphAgent.STOP_WORDS


def test_the_package_exports_the_agent_and_nothing_by_accident():
    assert service.KnowledgeGraphAgent is KnowledgeGraphAgent
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = service.Nonsense  # type: ignore[attr-defined]


def test_importing_the_package_loads_neither_database_nor_model():
    loaded = (
        "import sys, service; print(sorted({'sqlalchemy', 'torch', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_response_has_these_keys(agent: KnowledgeGraphAgent):
    response = agent.query("parcel")
    assert set(response) == {
        *("answer", "sources", "entities", "facts"),
        *("cypher_query", "query_type", "token_usage"),
        *("citations", "mode", "notice"),
    }
    assert "[1]" in response["answer"]
    assert response["mode"] == "extractive"
    assert response["sources"] == ["Alpha", "Beta"]
    assert response["query_type"] == "vector_search"
    assert "hybrid_search_nodes" in response["cypher_query"]
    assert response["token_usage"] == {"input_tokens": 0, "output_tokens": 0, "api_calls": 0}


def test_search_results_have_a_title_once_with_raw_and_calibrated_similarity(
    agent: KnowledgeGraphAgent,
):
    results = agent.semantic_search("parcel", top_k=5)
    assert sorted(each["title"] for each in results) == ["Alpha", "Beta", "Stub"]
    [alpha] = [each for each in results if each["title"] == "Alpha"]
    assert alpha["similarity"] == pytest.approx(0.9, abs=1e-3)
    assert alpha["confidence"] == pytest.approx(0.9, abs=1e-3)
    assert alpha["content"].startswith("alpha parcel part 0")
    assert len(alpha["sections"]) == 2
    assert len(agent.semantic_search("parcel", top_k=1)) == 1
    json.dumps(results)


# --- the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "gated"),
    [
        ({"similarity": 0.49}, True),
        ({"similarity": 0.5}, False),
        ({"similarity": 0.3, "confidence": 0.5}, False),
        ({"similarity": 0.9, "confidence": 0.49}, True),
    ],
)
def test_the_gate_judges_replaced_results(agent, result: dict[str, float], gated: bool):
    searched(agent, {"*": [{"title": "T", "content": LONG_TEXT, **result}]})
    agent.claude = claude_saying("By my own knowledge.")
    response = agent.query("anything")
    if gated:
        assert response["query_type"] == "confidence_gated_fallback"
        assert (response["sources"], response["entities"], response["facts"]) == ([], [], [])
    else:
        assert response["query_type"] == "vector_search"
        assert response["sources"] == ["T"]
    assert response["answer"] == "By my own knowledge."


def test_a_gated_question_reaches_claude_without_any_context(agent: KnowledgeGraphAgent):
    searched(agent, {"*": [{"title": "T", "content": "SECRET", "similarity": 0.1}]})
    agent.claude = claude_saying("?")
    agent.query("anything")
    assert "SECRET" not in json.dumps(agent.claude.asked)  # type: ignore[union-attr]


def test_the_threshold_of_the_object_counts(agent: KnowledgeGraphAgent):
    agent.CONTEXT_CONFIDENCE_THRESHOLD = 0.95
    assert agent.query("parcel")["query_type"] == "confidence_gated_fallback"


def test_nothing_found_is_gated(agent: KnowledgeGraphAgent):
    searched(agent, {})
    assert agent.query("anything")["query_type"] == "confidence_gated_fallback"


# --- several queries ---------------------------------------------------------------------------


def test_titles_found_by_several_phrasings_keep_their_highest_similarity(
    agent: KnowledgeGraphAgent,
):
    agent.claude = claude_saying('["one", "two"]')
    asked = searched(
        agent,
        {
            "first": [{"title": "A", "similarity": 0.7}, {"title": "B", "similarity": 0.5}],
            "one": [{"title": "A", "similarity": 0.9}, {"title": "C", "similarity": 0.4}],
            "two": [{"title": "B", "similarity": 0.3}],
        },
    )
    results = agent._multi_query_retrieve("first", max_results=5)
    assert asked == ["first", "one", "two"]
    assert [(each["title"], each["similarity"]) for each in results] == [
        *(("A", 0.9), ("B", 0.5), ("C", 0.4))
    ]
    assert agent.claude.asked[0]["model"] == "claude-haiku-4-5-20251001"  # type: ignore[union-attr]


@pytest.mark.parametrize(("asked", "expected"), [(0, 1), (-5, 1), (3, 3), (99, 20)])
def test_results_of_several_queries_are_clamped(agent, asked: int, expected: int):
    seen = []

    def search(query: str, top_k: int) -> list[dict[str, Any]]:
        seen.append(top_k)
        return [{"title": f"T{place}", "similarity": place / 100} for place in range(30)]

    agent.semantic_search = search
    assert len(agent._multi_query_retrieve("q", max_results=asked)) == expected
    assert seen == [expected]


def test_one_failed_search_is_logged_and_skipped(agent, caplog: pytest.LogCaptureFixture):
    agent.claude = claude_saying('["bad", "good"]')

    def search(query: str, top_k: int) -> list[dict[str, Any]]:
        if query == "bad":
            raise RuntimeError("no luck")
        return [{"title": query, "similarity": 0.5}]

    agent.semantic_search = search
    with caplog.at_level(logging.WARNING):
        results = agent._multi_query_retrieve("q")
    assert sorted(each["title"] for each in results) == ["good", "q"]
    assert "Search for 'bad' failed and is skipped" in caplog.text


def test_it_raises_only_when_every_search_fails(agent: KnowledgeGraphAgent):
    agent.claude = claude_saying('["one", "two"]')

    def search(query: str, top_k: int = 5) -> list[dict[str, Any]]:
        raise DatabaseUnavailable("gone")

    agent.semantic_search = search  # type: ignore[method-assign]
    with pytest.raises(DatabaseUnavailable):
        agent._multi_query_retrieve("q")


def test_the_real_search_takes_all_phrasings_in_one_batch(open_agent: OpenAgent, filled: str):
    embedder = AxisEmbedder()
    agent = open_agent(embedder=embedder, enable_multi_query=True)
    agent.claude = claude_saying('["one", "two"]')
    response = agent.query("parcel")
    assert ("parcel", "one", "two") in embedder.batches
    assert response["sources"] == ["Alpha", "Beta"]
    # One call for the phrasings, one for the answer.
    assert response["token_usage"] == {"input_tokens": 20, "output_tokens": 40, "api_calls": 2}


def test_a_search_overridden_in_a_subclass_is_called_for_each_phrasing(
    database: LiveDatabase, filled: str
):
    class Own(KnowledgeGraphAgent):
        asked: list[str] = []  # noqa: RUF012 - read by the test

        def semantic_search(self, query: str, top_k: int = 5) -> list[dict[str, Any]]:
            self.asked.append(query)
            return super().semantic_search(query, top_k)

    settings = Settings(embedding_dim=8)
    with Own(database.service_url, tenant_id="acme", embedder=EMBEDDER, settings=settings) as agent:
        agent.claude = claude_saying('["one", "two"]')
        agent._multi_query_retrieve("parcel")
        assert Own.asked == ["parcel", "one", "two"]


def test_one_query_or_several_is_routed_by_the_flag(agent: KnowledgeGraphAgent):
    calls: list[tuple[str, int]] = []

    def several(question: str, max_results: int) -> list[dict[str, Any]]:
        calls.append((question, max_results))
        return [{"title": "T1", "similarity": 0.9}, {"title": "T2", "similarity": 0.7}]

    asked = searched(agent, {"*": [{"title": "T", "similarity": 0.8}]})
    agent._multi_query_retrieve = several  # type: ignore[method-assign, assignment]
    found, best = agent._vector_primary_retrieve("q", max_results=5)
    assert (asked, calls, found["sources"], best) == (["q"], [], ["T"], 0.8)
    agent.enable_multi_query = True
    found, best = agent._vector_primary_retrieve("q", max_results=5)
    assert (asked, calls) == (["q"], [("q", 5)])
    assert (found["sources"], best) == (["T1", "T2"], 0.9)


# --- flags -------------------------------------------------------------------------------------


def test_without_enhancements_every_flag_but_multi_query_is_off(open_agent: OpenAgent, filled):
    plain = open_agent(use_enhancements=False, enable_multi_query=True, enable_cross_encoder=True)
    assert not plain.enable_reranker
    assert not plain.enable_multidoc
    assert not plain.enable_fewshot
    assert not plain.enable_cross_encoder
    assert plain.enable_multi_query
    options = plain._frame("parcel", max_results=5).options
    assert not options.multidoc
    assert not options.graph_prior
    assert options.reranker == "none"


def test_gate_and_quality_act_without_enhancements(open_agent: OpenAgent, filled: str):
    plain = open_agent(use_enhancements=False)
    assert "Stub" not in plain.query("parcel")["sources"]
    searched(plain, {"*": [{"title": "T", "content": LONG_TEXT, "similarity": 0.49}]})
    assert plain.query("parcel")["query_type"] == "confidence_gated_fallback"


def test_the_cross_encoder_sees_twice_as_many_results(open_agent: OpenAgent, filled: str):
    agent = open_agent(enable_cross_encoder=True)
    seen = []

    def search(query: str, top_k: int = 5) -> list[dict[str, Any]]:
        seen.append(top_k)
        return []

    agent.semantic_search = search  # type: ignore[method-assign]
    agent._vector_primary_retrieve("q", 5)
    agent._vector_primary_retrieve("q", 100)
    assert seen == [10, 40]


# --- sections and quality ----------------------------------------------------------------------


def test_the_quality_method_is_the_table(agent: KnowledgeGraphAgent):
    assert agent._score_section_quality("See also.", "quantum entanglement") == 0.0
    full = " ".join(["quantum", "entanglement"] * 100)
    assert agent._score_section_quality(full, "quantum entanglement") == pytest.approx(1.0)


def test_a_replaced_quality_method_decides_what_stays(agent: KnowledgeGraphAgent):
    agent._score_section_quality = (  # type: ignore[method-assign]
        lambda content, question: float("alpha" in content)
    )
    assert agent.query("parcel")["sources"] == ["Alpha"]


def test_the_text_of_sources_holds_only_good_sections(agent: KnowledgeGraphAgent):
    text = agent._fetch_source_text(["Beta", "Stub", "Alpha"], question="parcel")
    assert text.index("beta parcel part 0") < text.index("beta parcel part 1")
    assert text.index("beta parcel part 1") < text.index("alpha parcel part 0")
    assert "See also" not in text
    assert "whole" not in text


def test_without_a_question_all_sections_are_in_the_text(agent: KnowledgeGraphAgent):
    assert "See also parcel." in agent._fetch_source_text(["Stub"])


def test_where_all_sections_are_poor_the_articles_content_is_the_text(
    agent: KnowledgeGraphAgent,
):
    agent._score_section_quality = lambda content, question: 0.0  # type: ignore[method-assign]
    text = agent._fetch_source_text(["Alpha", "Stub"], question="parcel")
    assert text == "Alpha\nwhole\n\nStub\nSee also parcel."


def test_one_poor_article_gets_no_fallback_beside_a_good_one(agent: KnowledgeGraphAgent):
    assert "See also" not in agent._fetch_source_text(["Stub", "Alpha"], question="parcel")


def test_no_more_articles_than_asked_for_are_read(agent: KnowledgeGraphAgent):
    text = agent._fetch_source_text(["Alpha", "Beta"], max_articles=1)
    assert "alpha" in text
    assert "beta" not in text


def test_unknown_titles_have_no_text(agent: KnowledgeGraphAgent):
    assert agent._fetch_source_text(["Nowhere"], question="parcel") == ""
    assert agent._fetch_source_text([]) == ""


def test_the_context_reaches_claude(agent: KnowledgeGraphAgent):
    agent.claude = claude_saying("In Alpha.")
    response = agent.query("parcel")
    assert response["answer"] == "In Alpha."
    [request] = agent.claude.asked  # type: ignore[union-attr]
    assert request["model"] == "claude-opus-4-6"
    assert "alpha parcel part 0" in request["messages"][0]["content"]


# --- Claude absent, slow, or talking nonsense ---------------------------------------------------


@pytest.mark.parametrize("answer", [fail(401), fail(500), garble(), say("")])
def test_whatever_claude_does_the_sources_come_back(
    database: LiveDatabase, filled: str, answer: Answer
):
    with run_messages_server(answer) as server:
        settings = Settings(embedding_dim=8, anthropic_base_url=server.base_url)
        with KnowledgeGraphAgent(
            database.service_url,
            "key",
            tenant_id="acme",
            enable_multi_query=True,
            embedder=EMBEDDER,
            settings=settings,
        ) as agent:
            response = agent.query("parcel")
    assert response["sources"] == ["Alpha", "Beta"]
    assert response["mode"] == "degraded"
    assert "[1]" in response["answer"]


@pytest.mark.parametrize("client", [SimpleNamespace(messages=None), object(), "nonsense"])
def test_a_client_that_is_none_breaks_nothing(agent: KnowledgeGraphAgent, client: Any):
    agent.claude = client
    agent.enable_multi_query = True
    assert agent.query("parcel")["mode"] == "degraded"


# --- databases ---------------------------------------------------------------------------------


def test_an_agent_sees_its_tenant_alone(
    open_agent: OpenAgent, filled: str, make_tenant: MakeTenant, upsert: Upsert
):
    make_tenant("other")
    theirs = NodeDraft("x", "article", title="Theirs", content=f"parcel {LONG_TEXT}")
    upsert("other", [theirs], embeddings=[with_cosine(0.95)], embedder_version=EMBEDDER.version)
    mine, other = open_agent(), open_agent(tenant_id="other")
    assert "Theirs" not in mine.query("parcel")["sources"]
    assert other.query("parcel")["sources"] == ["Theirs"]
    assert mine._fetch_source_text(["Theirs"]) == ""


def test_groups_decide_what_an_agent_sees(
    open_agent: OpenAgent, make_tenant: MakeTenant, upsert: Upsert
):
    make_tenant("acme")
    closed = NodeDraft(
        "x", "article", title="Closed", content=f"parcel {LONG_TEXT}", acl=("board",)
    )
    upsert("acme", [closed], embeddings=[with_cosine(0.95)], embedder_version=EMBEDDER.version)
    assert open_agent().query("parcel")["sources"] == []
    assert open_agent(groups=["board"]).query("parcel")["sources"] == ["Closed"]
    assert open_agent()._fetch_source_text(["Closed"]) == ""


def test_an_agent_that_only_reads_cannot_write(open_agent: OpenAgent, filled: str):
    node = NodeDraft("new", "article")
    with (
        pytest.raises(ServiceError, match="read-only"),
        tenant_transaction(open_agent()._engine, ["acme"]) as connection,
    ):
        upsert_nodes(connection, "acme", nodes=[node])
    writer = open_agent(read_only=False)
    with tenant_transaction(writer._engine, ["acme"]) as connection:
        assert upsert_nodes(connection, "acme", nodes=[node])[0].action == "added"


@pytest.mark.parametrize("place", ["mysql://host/database", "postgresql://host:port/x"])
def test_a_place_that_is_no_database_is_refused(place: str):
    with pytest.raises(SettingsError, match="db_path"):
        KnowledgeGraphAgent(place, settings=Settings())


def test_an_agent_without_a_place_is_refused():
    with pytest.raises(ServiceError, match="db_path is empty"):
        KnowledgeGraphAgent("", settings=Settings())


def test_a_trace_comes_with_the_response_when_it_is_on(open_agent: OpenAgent, filled: str):
    agent = open_agent(settings=Settings(embedding_dim=8, retrieval_trace=True))
    trace = agent.query("parcel")["trace"]
    names: Sequence[str] = [step["step"] for step in trace["steps"]]
    assert names[:2] == ["search", "gate"]
    assert "quality" in names
    json.dumps(trace)
