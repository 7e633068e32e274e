"""POST /v1/search and /v1/context: what is found, and how honestly."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from service.db.engine import tenant_transaction
from service.db.search import explain_hybrid_search
from tests.api.conftest import MakeKey, Tenant, app_for
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

QUERY = "When is a parcel delivered?"


def test_a_search_finds_sections_with_scores_bands_and_timings(acme: Tenant):
    found = acme.search(QUERY)
    assert found["mode"] == "hybrid"
    assert found["mode_reason"] is None
    assert [hit["position"] for hit in found["hits"]] == list(range(1, len(found["hits"]) + 1))
    first = found["hits"][0]
    assert first["node"]["tenant_id"] == "acme"
    assert first["scores"]["bm25"] > 0
    assert first["band"] in {"high", "good", "partial", "low"}
    steps = [timing["step"] for timing in found["timings"]]
    assert {"prepare", "embed", "search", "gate", "record", "total"} <= set(steps)
    assert found["trace"] is None
    assert "parcel" in found["terms"]


def test_fewer_hits_than_asked_for_are_explained(acme: Tenant):
    found = acme.search(QUERY, max_results=20)
    shortfall = found["shortfall"]
    assert shortfall["asked"] == 20
    assert shortfall["got"] == len(found["hits"]) < 20
    assert shortfall["reason"]


def test_relevance_and_band_are_those_of_the_sql_function(acme: Tenant, database: LiveDatabase):
    weights = {"bm25_weight": 0.4, "vector_weight": 0.6, "walk_weight": 0}
    found = acme.search(QUERY, options=weights, explain=True)
    with tenant_transaction(database.engine, ["acme"]) as connection:
        told = explain_hybrid_search(
            connection,
            ["acme"],
            query_text=QUERY,
            query_embedding=TinyEmbedder().embed_query(QUERY),
        )
    known = {hit.node_id: hit for hit in told.hits}
    assert found["hits"]
    for hit in found["hits"]:
        expected = known[hit["node"]["node_id"]]
        assert hit["relevance"] == pytest.approx(expected.relevance, abs=1e-5)
        assert hit["band"] == expected.band
        assert hit["terms"] == pytest.approx(expected.terms)


def test_explain_adds_what_each_step_did_and_the_statement(acme: Tenant):
    trace = acme.search(QUERY, explain=True)["trace"]
    assert [step["step"] for step in trace["steps"]][:2] == ["search", "gate"]
    assert "hybrid_search_nodes" in trace["statement"]


def test_the_same_question_again_is_remembered_and_says_so(acme: Tenant):
    assert acme.search(QUERY)["cached"] is False
    again = acme.search(QUERY)
    assert again["cached"] is True
    assert again["hits"]


@pytest.mark.parametrize(
    ("options", "mode", "reason"),
    [
        ({"vector_weight": 0}, "keywords", "vector_weight is 0"),
        ({"bm25_weight": 0}, "vectors", "bm25_weight is 0"),
    ],
)
def test_a_leg_without_weight_does_not_run_and_the_mode_says_why(
    acme: Tenant, options: dict[str, float], mode: str, reason: str
):
    found = acme.search(QUERY, options=options)
    assert (found["mode"], found["mode_reason"]) == (mode, reason)


def test_a_question_of_stop_words_is_searched_by_vectors_alone(acme: Tenant):
    found = acme.search("what is the")
    assert (found["mode"], found["mode_reason"]) == ("vectors", "the query has no searchable word")


def test_a_tenant_of_another_model_is_searched_by_keywords_alone(
    make_tenant: MakeTenant,
    make_key: MakeKey,
    make_node: MakeNode,
    upsert: Upsert,
    client: TestClient,
):
    make_tenant("acme")
    other = TinyEmbedder(model="other")
    text = "A parcel is delivered by the courier. " * 12
    vector = other.embed_query("parcel")
    upsert("acme", [make_node("a", text)], embeddings=[vector], embedder_version=other.version)
    found = Tenant("acme", make_key("acme"), client).search("parcel")
    assert found["mode"] == "keywords"
    assert other.version in found["mode_reason"]
    assert [hit["node"]["external_id"] for hit in found["hits"]] == ["a"]
    assert found["hits"][0]["scores"]["vector"] is None


def test_a_question_about_something_else_is_marked_as_gated(acme: Tenant):
    assert acme.search("zebra quantum violin")["gated"] is True


def test_a_search_shows_what_points_the_other_way_too(
    make_tenant: MakeTenant,
    make_key: MakeKey,
    make_node: MakeNode,
    upsert: Upsert,
    client: TestClient,
):
    make_tenant("acme")
    away = -TinyEmbedder().embed_query("parcel")
    text = "A parcel is delivered by the courier. " * 12
    version = TinyEmbedder().version
    upsert("acme", [make_node("a", text)], embeddings=[away], embedder_version=version)
    found = Tenant("acme", make_key("acme"), client).search("parcel")
    assert found["confidence"] < 0
    assert (len(found["hits"]), found["gated"]) == (1, True)


def test_groups_come_from_the_key_alone(
    acme: Tenant, make_key: MakeKey, make_node: MakeNode, upsert: Upsert
):
    text = "The secret parcel is delivered by the courier at night to the back door. " * 4
    upsert("acme", [make_node("secret", text, acl=["boss"])])
    seen = Tenant("acme", make_key("acme", groups=["boss"]), acme.client).search("secret parcel")
    hidden = acme.search("secret parcel")
    assert "secret" in {hit["node"]["external_id"] for hit in seen["hits"]}
    assert "secret" not in {hit["node"]["external_id"] for hit in hidden["hits"]}


def test_a_search_sees_its_own_tenant_alone(acme: Tenant, globex: Tenant):
    for tenant in (acme, globex):
        hits = tenant.search(QUERY, options={"confidence_threshold": 0})["hits"]
        assert hits
        assert {hit["node"]["tenant_id"] for hit in hits} == {tenant.name}


def test_a_context_stays_within_its_budget_and_accounts_for_every_candidate(acme: Tenant):
    body = {"query": QUERY, "token_budget": 60, "options": {"confidence_threshold": 0}}
    response = acme.post("/v1/context", body)
    assert response.status_code == 200
    context = response.json()
    assert 0 < context["tokens"] <= context["budget"] == 60
    outcomes = {each["outcome"] for each in context["candidates"]}
    assert "dropped" in outcomes
    assert all(each["reason"] for each in context["candidates"] if each["outcome"] == "dropped")
    assert "pack" in [timing["step"] for timing in context["timings"]]


def test_a_context_of_another_tenant_is_its_own(acme: Tenant, globex: Tenant):
    globex.store({"only.md": "# Zeppelin\n\n" + "The zeppelin lands on the roof at noon. " * 8})
    body = {"query": "zeppelin roof noon", "options": {"confidence_threshold": 0}}
    assert "zeppelin" in globex.post("/v1/context", body).json()["text"].lower()
    assert "zeppelin" not in acme.post("/v1/context", body).json()["text"].lower()


def test_nothing_relevant_makes_an_empty_context(acme: Tenant):
    body = {"query": "zebra quantum violin", "options": {"confidence_threshold": 1}}
    context = acme.post("/v1/context", body).json()
    assert (context["text"], context["tokens"], context["blocks"]) == ("", 0, [])


def test_a_demo_needs_no_key_on_this_machine(
    database: LiveDatabase, make_tenant: MakeTenant, make_node: MakeNode, upsert: Upsert
):
    make_tenant("demo")
    upsert("demo", [make_node("a", "A parcel is delivered by the courier. " * 12)])
    app = app_for(database, demo=True)
    with TestClient(app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000)) as client:
        assert client.post("/v1/search", json={"query": "parcel"}).json()["hits"]
