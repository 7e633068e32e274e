"""Nodes, links, documents and jobs over HTTP, each with a second tenant beside it."""

from __future__ import annotations

from typing import Any

import pytest

from service.db.queue import QueueWorker
from service.ingestion.job_kinds import INGESTION_KINDS
from service.ingestion.job_runner import JobRunner
from tests.api.conftest import Tenant
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

TEXT = (
    "The courier rings twice and leaves the parcel with a neighbour if nobody opens the door, and "
    "a card in the letter box says with which neighbour it is, and until when it can be fetched."
)


def node(external_id: str, **more: Any) -> dict[str, Any]:
    return {"external_id": external_id, "node_type": "article", "content": TEXT, **more}


def put(tenant: Tenant, *nodes: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    response = tenant.call("PUT", "/v1/nodes", json={"nodes": list(nodes), **more})
    assert response.status_code == 200, response.text
    stored: list[dict[str, Any]] = response.json()["nodes"]
    return stored


def list_all(tenant: Tenant, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = tenant.get(f"/v1/nodes?{query}" + (f"&cursor={cursor}" if cursor else "")).json()
        found += page["nodes"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def test_a_node_is_stored_embedded_found_and_read(acme: Tenant):
    [stored] = put(acme, node("courier", title="Courier", metadata={"colour": "red"}))
    assert stored["action"] == "added"
    read = acme.get(f"/v1/nodes/{stored['node_id']}").json()
    assert (read["external_id"], read["metadata"]) == ("courier", {"colour": "red"})
    hits = acme.search("the courier rings twice")["hits"]
    hit = next(hit for hit in hits if hit["node"]["external_id"] == "courier")
    assert hit["scores"]["vector"] > 0


def test_an_unchanged_node_is_not_embedded_again(acme: Tenant):
    put(acme, node("courier"))
    assert [each["action"] for each in put(acme, node("courier"))] == ["unchanged"]
    assert [each["action"] for each in put(acme, node("courier", title="New"))] == ["changed"]


def test_a_batch_with_a_flaw_stores_nothing(acme: Tenant):
    body = {"nodes": [node("good"), node("bad", parent="nowhere")]}
    response = acme.call("PUT", "/v1/nodes", json=body)
    assert response.status_code == 422
    assert "good" not in {each["external_id"] for each in list_all(acme)}


def test_embeddings_may_be_brought_with_the_name_of_their_model(acme: Tenant):
    vector = TinyEmbedder().embed_query("courier").tolist()
    put(acme, node("own", embedding=vector), embedder_version=TinyEmbedder().version)
    assert "own" in {hit["node"]["external_id"] for hit in acme.search("courier")["hits"]}


@pytest.mark.parametrize(
    ("vector", "version", "status"),
    [
        ([0.1] * 8, None, 422),
        ([0.1] * 8, "other@1/8", 409),
        ([0.1] * 9, TinyEmbedder().version, 422),
        (None, TinyEmbedder().version, 422),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(
    acme: Tenant, vector: list[float] | None, version: str | None, status: int
):
    body = {"nodes": [node("own", embedding=vector)], "embedder_version": version}
    response = acme.call("PUT", "/v1/nodes", json=body)
    assert response.status_code == status, response.text


def test_pages_hold_every_node_once_and_filters_hold(acme: Tenant):
    put(acme, *(node(f"n{place}", metadata={"odd": place % 2}) for place in range(7)))
    listed = [each["external_id"] for each in list_all(acme, "limit=2&node_type=article")]
    assert len(listed) == len(set(listed)) == 9
    odd = list_all(acme, 'limit=2&metadata={"odd": 1}')
    assert [each["external_id"] for each in odd] == ["n1", "n3", "n5"]
    assert list_all(acme, "dataset_name=none") == []


@pytest.mark.parametrize("cursor", ["!", "bm9uc2Vuc2U", "WyJhIl0", "WzEsIDJd", "é"])
def test_a_cursor_of_somebody_else_is_refused(acme: Tenant, cursor: str):
    response = acme.get("/v1/nodes", params={"cursor": cursor})
    assert response.status_code == 422


def test_deleted_nodes_are_gone_with_their_sections(acme: Tenant):
    response = acme.call("DELETE", "/v1/nodes", params={"external_id": ["parcels.md", "none"]})
    gone = {each["external_id"] for each in response.json()["deleted"]}
    assert "parcels.md" in gone
    assert len(gone) > 1
    assert not gone & {each["external_id"] for each in list_all(acme)}


def test_links_are_stored_and_shown_as_a_graph(acme: Tenant):
    a, b = put(acme, node("a", title="A"), node("b", title="B"))
    link = {"source": "a", "target": "b", "link_type": "see", "weight": 2}
    [stored] = acme.post("/v1/links", {"links": [link]}).json()["links"]
    assert (stored["source_id"], stored["target_id"]) == (a["node_id"], b["node_id"])
    graph = acme.post("/v1/graph", {"node_ids": [a["node_id"]]}).json()
    assert {each["node_id"] for each in graph["nodes"]} == {a["node_id"], b["node_id"]}
    assert [each["asked"] for each in graph["nodes"]] == [True, False]
    assert graph["links"][0]["source_id"] == a["node_id"]


def test_similar_nodes_are_like_the_node_and_not_the_node(acme: Tenant):
    a, b = put(acme, node("a", title="Courier bell"), node("b", title="Courier door"))
    hits = acme.get(f"/v1/nodes/{a['node_id']}/similar").json()["hits"]
    found = [hit["node"]["node_id"] for hit in hits]
    assert b["node_id"] in found
    assert a["node_id"] not in found


def test_the_nodes_of_another_tenant_are_not_there(acme: Tenant, globex: Tenant):
    [stored] = put(acme, node("secret"))
    number = stored["node_id"]
    assert globex.get(f"/v1/nodes/{number}").status_code == 404
    assert globex.get(f"/v1/nodes/{number}/similar").status_code == 404
    assert globex.post("/v1/graph", {"node_ids": [number]}).json()["nodes"] == []
    assert "secret" not in {each["external_id"] for each in list_all(globex)}
    gone = globex.call("DELETE", "/v1/nodes", params={"external_id": "secret"}).json()
    assert gone == {"deleted": []}
    link = {"source": "secret", "target": "parcels.md"}
    assert globex.post("/v1/links", {"links": [link]}).status_code == 422
    assert acme.get(f"/v1/nodes/{number}").status_code == 200


def test_a_node_of_other_groups_is_not_there_either(acme: Tenant):
    [stored] = put(acme, node("secret", acl=["boss"]))
    assert acme.get(f"/v1/nodes/{stored['node_id']}").status_code == 404
    assert "secret" not in {each["external_id"] for each in list_all(acme)}


# --- documents and jobs --------------------------------------------------------------------------


def test_small_documents_are_stored_at_once_as_json_or_as_files(acme: Tenant):
    report = acme.store({"bell.md": f"# Bell\n\n{TEXT}"})
    assert (report["added"], report["rejected"]) == (1, [])
    files = [("file", ("door.md", f"# Door\n\n{TEXT}".encode())), ("file", ("note.txt", TEXT))]
    response = acme.call("POST", "/v1/documents", files=files)
    assert response.status_code == 200, response.text
    assert response.json()["added"] == 2
    assert {"bell.md", "door.md", "note.txt"} <= {n["external_id"] for n in list_all(acme)}


def test_a_document_that_cannot_be_read_is_named(acme: Tenant):
    body = {"documents": [{"name": "empty.md", "content": "   "}]}
    response = acme.post("/v1/documents", body)
    assert response.status_code == 422
    assert "empty.md" in response.json()["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "application/xml"])
def test_documents_of_another_kind_of_body_are_refused(acme: Tenant, kind: str):
    response = acme.call("POST", "/v1/documents", content=b"text", headers={"Content-Type": kind})
    assert response.status_code == 415


def test_what_may_wait_or_is_large_becomes_a_job_that_a_worker_does(
    acme: Tenant, globex: Tenant, database: LiveDatabase
):
    large = {"documents": [{"name": "large.md", "content": f"# Large\n\n{TEXT} " * 4000}]}
    small = {"documents": [{"name": "bell.md", "content": f"# Bell\n\n{TEXT}"}]}
    assert acme.post("/v1/documents", large).status_code == 202
    response = acme.post("/v1/documents?wait=false&dataset_name=other", small)
    assert response.status_code == 202
    job = response.json()
    assert job["state"] == "queued"
    place = response.headers["location"]
    assert place == f"/v1/jobs/{job['job_id']}"
    runner = JobRunner(database.engine, INGESTION_KINDS, lambda _=None: TinyEmbedder(), None)
    QueueWorker(database.engine, database.service_url, runner.run, concurrency=1).run(once=True)
    done = acme.get(place).json()
    assert done["state"] == "succeeded"
    assert done["result"]["added"] == 1
    assert globex.get(place).status_code == 404
    assert acme.get("/v1/jobs/nonsense").status_code == 404
