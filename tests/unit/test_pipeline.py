"""The pipeline on a real database: every step from a question to the nodes that answer it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from service.db.engine import tenant_transaction
from service.db.nodes import upsert_links
from service.db.tenant_settings import write_tenant_settings
from service.errors import Conflict, DatabaseUnavailable, InvalidInput
from service.llm.messages import open_client
from service.pipeline import Pipeline, Retrieval
from service.retrieval import search
from service.retrieval.cache import RetrievalCache
from service.retrieval.request import RetrievalRequest
from service.settings import Settings
from service.types import Json, LinkDraft, NodeDraft, SearchFilters
from tests.candidates import LONG_TEXT, AxisEmbedder, with_cosine
from tests.conftest import MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.messages_server import run_messages_server, say

Ask = Callable[..., Retrieval]
Fill = Callable[..., None]


@pytest.fixture
def embedder() -> AxisEmbedder:
    return AxisEmbedder()


@pytest.fixture
def pipeline(database: LiveDatabase, embedder: AxisEmbedder) -> Pipeline:
    return Pipeline(database.engine, Settings(embedding_dim=8), embedder=embedder)


@pytest.fixture
def fill(make_tenant: MakeTenant, upsert: Upsert, embedder: AxisEmbedder) -> Fill:
    """fill(tenant, drafts, cosines): store nodes at these cosines to any question."""

    def store(tenant: str, nodes: Sequence[NodeDraft], cosines: Sequence[float | None]) -> None:
        make_tenant(tenant)
        vectors = [
            None if cosine is None else with_cosine(cosine, axis=1 + place % 7)
            for place, cosine in enumerate(cosines)
        ]
        upsert(tenant, nodes, embeddings=vectors, embedder_version=embedder.version)

    return store


@pytest.fixture
def ask(pipeline: Pipeline) -> Ask:
    """ask(text, max_results=..., **changes): retrieve from tenant acme."""

    def run(text: str = "parcel", *, max_results: int = 5, **changes: object) -> Retrieval:
        return pipeline.retrieve(
            RetrievalRequest(text, ("acme",), max_results=max_results, changes=changes)
        )

    return run


def names(retrieval: Retrieval) -> list[str]:
    return [each.node.external_id for each in retrieval.candidates]


def article(name: str, **fields: object) -> NodeDraft:
    given = {"title": name.upper(), "content": f"{name} parcel {LONG_TEXT}", **fields}
    return NodeDraft(name, "article", **given)  # type: ignore[arg-type]


def section(name: str, parent: str, order: int, **fields: object) -> NodeDraft:
    given = {"content": f"{name} parcel {LONG_TEXT}", **fields}
    return NodeDraft(
        name,
        "section",
        title=parent.upper(),
        parent=parent,
        order_index=order,
        **given,  # type: ignore[arg-type]
    )


# --- the whole ---------------------------------------------------------------------------------


def test_a_question_finds_the_best_nodes_first(fill: Fill, ask: Ask):
    fill("acme", [article("a"), article("b"), article("c")], [0.75, 0.95, 0.85])
    found = ask("parcel", bm25_weight=0.0, vector_weight=1.0)
    assert names(found) == ["b", "c", "a"]
    assert found.query_type == "vector_search"
    assert found.confidence == pytest.approx(0.95, abs=1e-3)
    assert found.statement.startswith("select node_id, bm25_score")
    assert found.trace is None


def test_below_the_gate_nothing_is_returned(fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.49])
    found = ask()
    assert found.query_type == "confidence_gated_fallback"
    assert found.candidates == ()
    assert found.confidence == pytest.approx(0.49, abs=1e-3)
    assert names(ask(confidence_threshold=0.4)) == ["a"]


def test_an_empty_tenant_is_gated(fill: Fill, ask: Ask, make_tenant: MakeTenant):
    make_tenant("acme")
    assert ask().query_type == "confidence_gated_fallback"


def test_the_best_articles_with_their_best_sections(fill: Fill, ask: Ask):
    nodes = [article("one", searchable=False), article("two", searchable=False)]
    nodes += [section(f"one#{place}", "one", place) for place in range(4)]
    nodes += [section("two#0", "two", 0)]
    fill("acme", nodes, [None, None, 0.9, 0.88, 0.86, 0.84, 0.8])
    assert names(ask(bm25_weight=0.0)) == ["one#0", "one#1", "one#2", "two#0"]
    assert names(ask(bm25_weight=0.0, max_sections=1)) == ["one#0", "two#0"]
    assert names(ask(bm25_weight=0.0, num_docs=1, max_sections=2)) == ["one#0", "one#1"]


def test_without_documents_the_best_results_are_returned(fill: Fill, ask: Ask):
    fill(
        "acme",
        [article(f"n{place}") for place in range(7)],
        [0.9 - place / 50 for place in range(7)],
    )
    assert names(ask(multidoc=False, max_results=3, bm25_weight=0.0)) == ["n0", "n1", "n2"]
    assert len(ask(multidoc=False, max_results=0).candidates) == 1


def test_stubs_are_left_out_unless_nothing_else_is_there(fill: Fill, ask: Ask):
    nodes = [
        article("full", searchable=False, content="The whole article " + LONG_TEXT),
        section("stub", "full", 0, content="parcel"),
        article("good"),
    ]
    fill("acme", nodes, [None, 0.95, 0.9])
    assert names(ask()) == ["good"]


def test_where_every_section_is_a_stub_the_articles_content_is_returned(fill: Fill, ask: Ask):
    nodes = [
        article("full", searchable=False, content="The whole article."),
        section("stub#0", "full", 0, content="parcel"),
        section("stub#1", "full", 1, content="parcels"),
    ]
    fill("acme", nodes, [None, 0.95, 0.9])
    found = ask()
    assert [each.node.content for each in found.candidates] == ["The whole article."]
    assert found.fallbacks == ("quality: whole articles instead",)


def test_the_same_text_is_returned_once(fill: Fill, ask: Ask):
    same = {"content": f"parcel {LONG_TEXT}", "title": "SAME"}
    fill("acme", [article("a", **same), article("b", **same), article("c")], [0.9, 0.8, 0.85])
    assert sorted(names(ask())) == ["a", "c"]


def test_a_linked_article_joins_the_pool_by_the_walk(database: LiveDatabase, fill: Fill, ask: Ask):
    nodes = [article("a"), article("linked", content=f"unlike {LONG_TEXT}")]
    nodes += [article(f"n{place}") for place in range(30)]
    fill("acme", nodes, [0.95, 0.2, *(0.9 - place / 100 for place in range(30))])
    with tenant_transaction(database.engine, ["acme"]) as connection:
        upsert_links(connection, "acme", links=[LinkDraft("a", "linked")])
    plain = {"multidoc": False, "bm25_weight": 0.0, "max_results": 5}
    assert names(ask(**plain, walk_weight=0.0)) == ["a", "n0", "n1", "n2", "n3"]
    assert names(ask(**plain)) == ["a", "n0", "n1", "n2", "linked"]


# --- what may be seen ----------------------------------------------------------------------------


def test_two_tenants_never_see_each_others_nodes_even_from_memory(pipeline: Pipeline, fill: Fill):
    fill("acme", [article("a")], [0.9])
    fill("other", [article("x")], [0.72])

    def names_of(tenant: str) -> list[str]:
        return names(pipeline.retrieve(RetrievalRequest("parcel", (tenant,))))

    assert [names_of(tenant) for tenant in ("acme", "other", "acme", "other")] == [
        *(["a"], ["x"], ["a"], ["x"])
    ]
    both = pipeline.retrieve(RetrievalRequest("parcel", ("acme", "other")))
    assert sorted(names(both)) == ["a", "x"]


def test_a_tenant_that_does_not_exist_is_an_error_and_not_an_empty_result(pipeline: Pipeline):
    with pytest.raises(Exception, match="does not exist"):
        pipeline.retrieve(RetrievalRequest("parcel", ("nobody",)))


def test_groups_are_part_of_what_is_remembered(pipeline: Pipeline, fill: Fill):
    fill("acme", [article("open"), article("closed", acl=["board"])], [0.9, 0.9])

    def names_for(*groups: str) -> list[str]:
        filters = SearchFilters(acl_groups=groups)
        return sorted(
            names(pipeline.retrieve(RetrievalRequest("parcel", ("acme",), filters=filters)))
        )

    assert names_for("board") == ["closed", "open"]
    assert names_for() == ["open"]
    assert names_for("staff") == ["open"]


def test_filters_types_and_datasets_are_part_of_what_is_remembered(pipeline: Pipeline, fill: Fill):
    fill("acme", [article("a", metadata={"area": "x"}), article("b")], [0.9, 0.9])
    plain = RetrievalRequest("parcel", ("acme",))
    assert len(pipeline.retrieve(plain).candidates) == 2
    narrow = replace(plain, filters=SearchFilters(metadata={"area": "x"}))
    assert names(pipeline.retrieve(narrow)) == ["a"]
    assert pipeline.retrieve(replace(plain, node_types=("field",))).candidates == ()
    assert pipeline.retrieve(replace(plain, dataset_name="elsewhere")).candidates == ()


# --- memory --------------------------------------------------------------------------------------


def test_a_question_asked_again_is_answered_from_memory_until_something_is_written(
    fill: Fill, ask: Ask, upsert: Upsert, embedder: AxisEmbedder
):
    fill("acme", [article("a")], [0.9])
    assert names(ask()) == ["a"]
    asked = len(embedder.batches)
    assert names(ask()) == ["a"]
    assert len(embedder.batches) == asked
    upsert("acme", [article("b")], embeddings=[with_cosine(0.95, axis=2)])
    assert sorted(names(ask())) == ["a", "b"]
    assert len(embedder.batches) == asked + 1


def test_memory_ends_after_its_time(database: LiveDatabase, fill: Fill, embedder: AxisEmbedder):
    pipeline = Pipeline(
        database.engine,
        Settings(embedding_dim=8),
        embedder=embedder,
        cache=RetrievalCache(seconds=0),
    )
    fill("acme", [article("a")], [0.9])
    for _ in range(2):
        pipeline.retrieve(RetrievalRequest("parcel", ("acme",)))
    assert len(embedder.batches) == 2


def test_a_trace_says_that_it_comes_from_memory(fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.9])
    first, again = ask(trace=True), ask(trace=True)
    assert first.trace is not None
    assert again.trace is not None
    assert (first.trace.cached, again.trace.cached) == (False, True)


# --- settings, tenant, call ----------------------------------------------------------------------


def test_a_tenants_settings_stand_before_the_services_and_a_calls_before_both(
    database: LiveDatabase, fill: Fill, ask: Ask
):
    fill("acme", [article("a")], [0.45])
    assert ask().options.fusion == "rrf"
    with tenant_transaction(database.engine, ["acme"]) as connection:
        values: dict[str, Json] = {"hybrid_fusion": "convex", "context_confidence_threshold": 0.4}
        write_tenant_settings(connection, "acme", settings=values)
    assert ask().options.fusion == "convex"
    assert names(ask()) == ["a"]
    assert ask(fusion="rrf", confidence_threshold=0.6).query_type == "confidence_gated_fallback"


def test_weights_fitted_to_a_tenant_are_not_changed_by_an_intent(
    database: LiveDatabase, fill: Fill, ask: Ask
):
    fill("acme", [article("a")], [0.9])
    assert ask("What is a parcel?").options.bm25_weight == 0.5
    with tenant_transaction(database.engine, ["acme"]) as connection:
        values = {"hybrid_keyword_weight": 0.2, "hybrid_vector_weight": 0.8}
        write_tenant_settings(connection, "acme", settings=values)
    fitted = ask("What is a parcel?")
    assert (fitted.intent, fitted.options.bm25_weight) == ("definition", 0.2)


def test_settings_of_tenants_that_differ_are_left_out(
    database: LiveDatabase, fill: Fill, pipeline: Pipeline
):
    fill("acme", [article("a")], [0.9])
    fill("other", [article("x")], [0.9])
    with tenant_transaction(database.engine, ["acme"]) as connection:
        write_tenant_settings(connection, "acme", settings={"hybrid_fusion": "convex"})
    both = pipeline.retrieve(RetrievalRequest("parcel", ("acme", "other")))
    assert both.options.fusion == "rrf"


def test_an_empty_question_and_an_unknown_option_are_refused(fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.9])
    with pytest.raises(InvalidInput, match="empty"):
        ask("  ")
    with pytest.raises(InvalidInput, match="no option"):
        ask(rerankr="mmr")


def test_a_question_of_another_model_than_the_tenants_is_refused(
    database: LiveDatabase, fill: Fill
):
    fill("acme", [article("a")], [0.9])
    stranger = Pipeline(
        database.engine, Settings(embedding_dim=8), embedder=AxisEmbedder("stranger@1/8")
    )
    with pytest.raises(Conflict, match=r'Tenant "acme" is embedded by axis@1/8'):
        stranger.retrieve(RetrievalRequest("parcel", ("acme",)))


# --- expansion -----------------------------------------------------------------------------------


def test_all_phrasings_are_embedded_in_one_batch_and_their_best_hits_merged(
    database: LiveDatabase, fill: Fill, embedder: AxisEmbedder
):
    fill("acme", [article("a"), article("b", content=f"locker {LONG_TEXT}")], [0.9, 0.8])
    with run_messages_server(say(json.dumps(["locker box", "where to"]))) as server:
        expanding = Pipeline(
            database.engine,
            Settings(embedding_dim=8),
            embedder=embedder,
            claude=open_client("key", server.base_url),
            consent="key",
        )
        request = RetrievalRequest(
            "parcel", ("acme",), changes={"multi_query": True, "trace": True}
        )
        found = expanding.retrieve(request)
    assert embedder.batches[-1] == ("parcel", "locker box", "where to")
    assert sorted(names(found)) == ["a", "b"]
    assert found.usage.api_calls == 1
    assert found.trace is not None
    assert found.trace.steps[0].step == "expand"


def test_without_claude_expansion_falls_back_and_says_so(fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.9])
    found = ask(multi_query=True)
    assert names(found) == ["a"]
    assert found.fallbacks == ("expansion: there is no Claude client",)


def test_a_search_that_fails_for_one_phrasing_is_skipped(
    fill: Fill, database: LiveDatabase, embedder: AxisEmbedder, caplog: pytest.LogCaptureFixture
):
    fill("acme", [article("a")], [0.9])
    answer = json.dumps(["a NUL byte \x00", "parcel post"])
    with run_messages_server(say(answer)) as server:
        expanding = Pipeline(
            database.engine,
            Settings(embedding_dim=8),
            embedder=embedder,
            claude=open_client("key", server.base_url),
            consent="key",
        )
        found = expanding.retrieve(
            RetrievalRequest("parcel", ("acme",), changes={"multi_query": True})
        )
    assert names(found) == ["a"]
    assert "failed and is skipped" in caplog.text


def test_when_every_search_fails_the_last_error_is_raised(monkeypatch, fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.9])

    def gone(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(search, "search_pools", gone)
    with pytest.raises(DatabaseUnavailable):
        ask(multi_query=True)


# --- reranking -----------------------------------------------------------------------------------


def test_a_cross_encoder_that_cannot_load_leaves_the_order_or_lets_mmr_decide(
    database: LiveDatabase, fill: Fill, embedder: AxisEmbedder, tmp_path
):
    fill("acme", [article("a"), article("b")], [0.9, 0.8])
    settings = Settings(embedding_dim=8, reranker="crossencoder", reranker_models=str(tmp_path))
    broken = Pipeline(database.engine, settings, embedder=embedder)
    request = RetrievalRequest("parcel", ("acme",), changes={"bm25_weight": 0.0})
    found = broken.retrieve(request)
    assert names(found) == ["a", "b"]
    assert found.fallbacks == ("cross-encoder: no model, order unchanged",)
    spread = replace(request, changes={"rerank_fallback": "mmr", "rerank_topk": 1})
    assert broken.retrieve(spread).fallbacks == ("cross-encoder: no model, mmr instead",)
    assert names(broken.retrieve(spread)) == ["a"]


def test_mmr_reorders_when_it_is_the_reranker(fill: Fill, ask: Ask):
    fill("acme", [article("a"), article("b"), article("c")], [0.95, 0.9, 0.75])
    assert len(ask(reranker="mmr", rerank_topk=2, multidoc=False).candidates) == 2


# --- the trace -----------------------------------------------------------------------------------


def test_a_trace_tells_every_step_and_why_each_node_left(fill: Fill, ask: Ask):
    nodes = [article("a"), article("stub", content="parcel"), article("far")]
    fill("acme", nodes, [0.9, 0.85, 0.6])
    trace = ask("What is a parcel?", trace=True).trace
    assert trace is not None
    told = json.loads(json.dumps(trace.to_json()))
    steps = {step["step"]: step for step in told["steps"]}
    # No walk: there are no links.
    assert list(steps) == ["search", "gate", "multidoc", "quality", "diversity"]
    assert steps["search"]["notes"]["intent"] == "definition"
    assert steps["search"]["notes"]["bm25_weight"] == 0.5
    assert steps["gate"]["notes"]["fires"] is False
    assert steps["multidoc"]["drops"][0]["reason"].startswith("relevance 0.600 is below")
    assert steps["quality"]["drops"][0]["reason"] == "quality 0.000 is below 0.3"
    for step in told["steps"][1:]:
        entered = {each["node_id"] for each in step["entered"]}
        left = {each["node_id"] for each in step["left"]}
        assert entered == left | {drop["node_id"] for drop in step["drops"]}


def test_a_gated_trace_drops_the_whole_pool(fill: Fill, ask: Ask):
    fill("acme", [article("a")], [0.3])
    trace = ask(trace=True).trace
    assert trace is not None
    assert [step.step for step in trace.steps] == ["search", "gate"]
    assert [drop.reason for drop in trace.steps[1].drops] == ["best confidence is below 0.5"]
