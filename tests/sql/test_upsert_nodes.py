"""upsert_nodes: what is added, changed and left alone, and that everything beside it agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.db.engine import owner_transaction
from service.errors import Conflict, InvalidInput
from service.types import Vector
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent, snapshot


def axis(number: int, dim: int = 8) -> Vector:
    vector = np.zeros(dim, np.float32)
    vector[number] = 1
    return vector


def read_node(database: LiveDatabase, tenant: str, external_id: str = "a") -> dict[str, Any]:
    """A node's row, with doc_id and the vector of its search row."""
    with owner_transaction(database.admin) as connection:
        row = connection.exec_driver_sql(
            "select n.*, n.embedding::real[] as stored, s.doc_id,"
            " s.embedding::vector::real[] as searched"
            " from knowledge_nodes as n"
            " left join contextforge.search_nodes as s using (tenant_id, node_id)"
            " where n.tenant_id = %s and n.external_id = %s",
            (tenant, external_id),
        )
        return dict(row.mappings().one())


def count_postings(database: LiveDatabase, tenant: str) -> int:
    with owner_transaction(database.admin) as connection:
        return int(
            connection.exec_driver_sql(
                "select count(*) from contextforge.postings where tenant_id = %s", (tenant,)
            ).scalar_one()
        )


def test_a_node_is_added_then_unchanged_then_changed(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()

    added = upsert(tenant, [make_node("a", "red apples"), make_node("b", "pears")])
    unchanged = upsert(tenant, [make_node("a", "red apples")])
    mixed = upsert(tenant, [make_node("a", "green apples"), make_node("b", "pears")])

    assert [(n.external_id, n.action) for n in added] == [("a", "added"), ("b", "added")]
    assert [n.action for n in unchanged] == ["unchanged"]
    assert {n.external_id: n.action for n in mixed} == {"a": "changed", "b": "unchanged"}
    assert {n.node_id for n in added} == {n.node_id for n in mixed}
    assert_consistent(database, tenant)


def test_an_unchanged_batch_writes_nothing(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    nodes = [make_node("a", "red", metadata={"k": [1]}, acl=["x"]), make_node("b", parent="a")]
    upsert(tenant, nodes, embeddings=[axis(0), axis(1)])
    before = snapshot(database, tenant)

    again = upsert(tenant, nodes, embeddings=[axis(0), axis(1)])
    without_embeddings = upsert(tenant, nodes)

    assert {n.action for n in [*again, *without_embeddings]} == {"unchanged"}
    assert snapshot(database, tenant) == before


def test_an_empty_batch_is_no_error(make_tenant: MakeTenant, upsert: Upsert) -> None:
    assert upsert(make_tenant(), []) == []


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"colour": "red"}},
        {"node_type": "field"},
        {"url": "https://example.org"},
        {"acl": ("staff",)},
        {"space_id": "s1"},
        {"order_index": 3},
        {"token_count": 5},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_text_changes_without_a_new_version_of_the_text(
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
    database: LiveDatabase,
    change: dict[str, object],
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red apples")], embeddings=[axis(0)])
    before, postings = read_node(database, tenant), count_postings(database, tenant)

    changed = upsert(tenant, [make_node("a", "red apples", **change)])

    after = read_node(database, tenant)
    (key, value), *_ = change.items()
    assert [n.action for n in changed] == ["changed"]
    assert after[key] == (list(value) if isinstance(value, tuple) else value)
    assert after["doc_id"] == before["doc_id"]
    assert after["stored"] == before["stored"] is not None
    assert count_postings(database, tenant) == postings
    assert_consistent(database, tenant)


@pytest.mark.parametrize("field", ["title", "summary", "header", "content", "lang"])
def test_a_changed_text_gets_a_new_doc_id_and_loses_its_embedding(
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
    database: LiveDatabase,
    field: str,
) -> None:
    tenant = make_tenant()
    texts = {"title": "Fruit", "summary": "of trees", "header": "Apples", "lang": "en"}
    upsert(tenant, [make_node("a", "running apples", **texts)], embeddings=[axis(0)])
    before = read_node(database, tenant)

    texts |= {"content": "running apples", field: "de" if field == "lang" else "Quinces run"}
    upsert(tenant, [make_node("a", **texts)])

    after = read_node(database, tenant)
    assert after["node_id"] == before["node_id"]
    assert after["doc_id"] != before["doc_id"]
    assert (after["stored"], after["searched"], after["embedder_version"]) == (None, None, None)
    assert_consistent(database, tenant)


def test_a_changed_text_keeps_the_embedding_that_comes_with_it(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red")], embeddings=[axis(0)], embedder_version="e1")
    upsert(tenant, [make_node("a", "green")], embeddings=[axis(1)], embedder_version="e1")

    node = read_node(database, tenant)
    assert node["stored"] == node["searched"] == axis(1).tolist()
    assert node["embedder_version"] == "e1"


def test_a_node_that_is_no_longer_searchable_leaves_the_index(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a", "red apples"), make_node("b", "red")], embeddings=[axis(0)] * 2)
    upsert(tenant, [make_node("a", "red apples", searchable=False)])

    assert read_node(database, tenant)["doc_id"] is None
    assert_consistent(database, tenant)
    upsert(tenant, [make_node("a", "red apples")])
    assert read_node(database, tenant)["doc_id"] is not None
    assert_consistent(database, tenant)


def test_a_parent_may_come_later_in_the_same_batch_or_by_its_id(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    batch = upsert(tenant, [make_node("child", parent="zebra"), make_node("zebra")])
    ids = {n.external_id: n.node_id for n in batch}
    upsert(tenant, [make_node("second", parent="zebra")])
    upsert(tenant, [make_node("third", parent_id=ids["zebra"])])

    for child in ("child", "second", "third"):
        assert read_node(database, tenant, child)["parent_id"] == ids["zebra"]
    upsert(tenant, [make_node("child")])
    assert read_node(database, tenant, "child")["parent_id"] is None


def test_a_parent_of_another_tenant_is_refused(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex")
    foreign = upsert(globex, [make_node("theirs")])[0].node_id

    for parent in ({"parent": "theirs"}, {"parent_id": foreign}):
        with pytest.raises(InvalidInput, match=r'node 2 \("bad"\) names parent'):
            upsert(acme, [make_node("good"), make_node("bad", **parent)])
    assert snapshot(database, acme)[1:] == []


def test_a_node_is_not_its_own_ancestor(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a"), make_node("b", parent="a"), make_node("c", parent="b")])
    before = snapshot(database, tenant)

    batches = [
        [make_node("a", parent="a")],
        [make_node("a", parent="c")],
        [make_node("x", parent="y"), make_node("y", parent="x")],
    ]
    for batch in batches:
        with pytest.raises(InvalidInput, match=r'node \d \("."\).* its own'):
            upsert(tenant, batch)
    assert snapshot(database, tenant) == before


def test_a_shorter_embedding_is_padded_with_zeros_and_searched_unpadded(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    given = [np.array(v, np.float32) for v in ([3, 4, 0], [1, 2, 2])]
    upsert(tenant, [make_node("a"), make_node("b")], embeddings=given, embedder_version="e3")

    a, b = read_node(database, tenant, "a"), read_node(database, tenant, "b")
    assert a["stored"] == [3, 4, 0, 0, 0, 0, 0, 0]
    assert a["searched"] == pytest.approx([0.6, 0.8, 0], abs=1e-3)
    cosine = np.dot(a["stored"], b["stored"]) / 15
    assert cosine == pytest.approx(np.dot(*given) / 15)
    with pytest.raises(InvalidInput, match="8 dimensions where the tenant has 3"):
        upsert(tenant, [make_node("c")], embeddings=[axis(0)], embedder_version="e3")


def test_another_embedder_is_a_conflict(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    tenant = make_tenant()
    upsert(tenant, [make_node("a")], embeddings=[axis(0)], embedder_version="e1")
    before = snapshot(database, tenant)

    with pytest.raises(Conflict, match='"acme" holds embeddings of "e1", not of "e2"'):
        upsert(tenant, [make_node("b")], embeddings=[axis(0)], embedder_version="e2")
    assert snapshot(database, tenant) == before


def test_the_same_external_ids_of_two_tenants_and_datasets_are_different_nodes(
    make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode, database: LiveDatabase
) -> None:
    acme, globex = make_tenant("acme"), make_tenant("globex", lang="de")
    node = make_node("a", "running apples")

    made = [*upsert(acme, [node]), *upsert(globex, [node]), *upsert(acme, [node], dataset_name="x")]

    assert [n.action for n in made] == ["added"] * 3
    assert len({n.node_id for n in made}) == 3
    assert_consistent(database, acme, globex)
