"""Traces, feedback, egress and text-to-SQL, each with a second tenant beside it."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import pytest

from service.db.egress import start_egress_call
from service.db.engine import owner_transaction, tenant_transaction
from service.db.traces import prune_traces
from service.demo import demo_files
from service.ingestion.convert import group_examples, group_schema
from service.ingestion.examples import Example, read_examples
from service.ingestion.ingest import Ingestion
from service.ingestion.schema_file import read_schema_file
from tests.api.conftest import Tenant
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

QUERY = "When is a parcel delivered?"


def test_a_trace_says_what_was_shown_without_the_words(acme: Tenant):
    found = acme.search(QUERY, options={"walk_weight": 0.3})
    trace = acme.get(f"/v1/traces/{found['trace_id']}").json()
    assert trace["kind"] == "search"
    assert trace["query_sha256"] == sha256(QUERY.encode()).hexdigest()
    assert [(hit["position"], hit["node_id"]) for hit in trace["hits"]] == [
        (hit["position"], hit["node"]["node_id"]) for hit in found["hits"]
    ]
    assert trace["settings"]["walk_weight"] == 0.3
    assert "search" in [timing["step"] for timing in trace["timings"]]
    assert QUERY not in str(trace)


@pytest.mark.parametrize("kind", ["context", "answer"])
def test_contexts_and_answers_leave_traces_too(acme: Tenant, kind: str):
    body = {"query": QUERY, "options": {"confidence_threshold": 0}}
    made = acme.post(f"/v1/{kind}", body).json()
    trace = acme.get(f"/v1/traces/{made['trace_id']}").json()
    assert trace["kind"] == kind
    assert trace["hits"]


def test_feedback_is_kept_for_what_was_shown_alone(acme: Tenant, database: LiveDatabase):
    found = acme.search(QUERY)
    shown = found["hits"][0]["node"]["node_id"]
    given = {"trace_id": found["trace_id"], "signal": "helpful", "node_id": shown, "note": "Yes"}
    response = acme.post("/v1/feedback", given)
    assert response.status_code == 201
    assert acme.post("/v1/feedback", {**given, "signal": "great"}).status_code == 422
    with tenant_transaction(database.engine, ["acme"]) as connection:
        rows = connection.exec_driver_sql("select feedback_id::text, signal, note from feedback")
        assert rows.all() == [(response.json()["feedback_id"], "helpful", "Yes")]


def test_traces_and_feedback_are_their_tenants_alone(acme: Tenant, globex: Tenant):
    trace_id = acme.search(QUERY)["trace_id"]
    assert globex.get(f"/v1/traces/{trace_id}").status_code == 404
    given = {"trace_id": trace_id, "signal": "helpful"}
    assert globex.post("/v1/feedback", given).status_code == 404


def test_old_traces_are_forgotten_with_their_feedback(acme: Tenant, database: LiveDatabase):
    old, new = acme.search(QUERY)["trace_id"], acme.search(QUERY)["trace_id"]
    acme.post("/v1/feedback", {"trace_id": old, "signal": "not_helpful"})
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update traces set created_at = now() - interval '40 days' where trace_id = %s", (old,)
        )
        assert prune_traces(connection, "acme", older_than=timedelta(days=30)) == 1
        assert connection.exec_driver_sql("select count(*) from feedback").scalar() == 0
    assert acme.get(f"/v1/traces/{old}").status_code == 404
    assert acme.get(f"/v1/traces/{new}").status_code == 200


def test_what_left_the_machine_is_listed_by_pages_for_its_tenant_alone(
    acme: Tenant, globex: Tenant, database: LiveDatabase
):
    with tenant_transaction(database.engine, ["acme"]) as connection:
        made = [
            str(
                start_egress_call(
                    connection,
                    ["acme"],
                    purpose="synthesis",
                    model="m",
                    text_sha256=sha256(b"x").digest(),
                    consent="key",
                )
            )
            for _ in range(5)
        ]
    first = acme.get("/v1/egress?limit=3").json()
    assert first["policy"] == "off"
    rest = acme.get(f"/v1/egress?limit=3&cursor={first['next_cursor']}").json()
    listed = [call["call_id"] for call in first["calls"] + rest["calls"]]
    assert listed == made[::-1]
    assert rest["next_cursor"] is None
    assert globex.get("/v1/egress").json()["calls"] == []
    assert acme.get("/v1/egress?cursor=WyJhIiwgImIiXQ").status_code == 422


# --- text-to-SQL ---------------------------------------------------------------------------------


@pytest.fixture
def sales(acme: Tenant, database: LiveDatabase) -> Tenant:
    """acme with the schema and the examples of the demo."""
    files = demo_files()
    examples = read_examples(files.examples, format="jsonl")
    ingestion = Ingestion(database.engine, "acme", TinyEmbedder(), dataset_name="sales_db")
    ingestion.run(group_schema(read_schema_file(files.schema)))
    rows = [each for each in examples if isinstance(each, Example)]
    ingestion.run(group_examples("examples", rows))
    return acme


def test_fields_and_examples_are_found_and_a_schema_is_written(sales: Tenant):
    fields = sales.post("/v1/fields", {"query": "email of the customer", "max_results": 5}).json()
    assert len(fields["fields"]) == 5
    assert fields["fields"][0]["table"]
    examples = sales.post("/v1/examples", {"query": "orders of a customer"}).json()["examples"]
    assert "select" in examples[0]["sql"].lower()
    body = {"query": "email of the customer", "dataset_name": "sales_db", "token_budget": 300}
    schema = sales.post("/v1/schema-context", body).json()
    assert schema["mode"] == "join_complete"
    assert schema["token_count"] <= 300
    assert schema["tables"]


def test_fields_examples_and_schemas_of_another_tenant_are_not_there(sales: Tenant, globex: Tenant):
    assert globex.post("/v1/fields", {"query": "email"}).json() == {"fields": []}
    assert globex.post("/v1/examples", {"query": "orders"}).json() == {"examples": []}
    body = {"query": "email", "dataset_name": "sales_db"}
    assert globex.post("/v1/schema-context", body).status_code == 404
