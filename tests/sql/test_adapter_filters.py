"""KnowledgeVerseAdapter and what is written: filters, groups, settings, broken nodes, outages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import sql

from service import ExampleSpec, KnowledgeVerseAdapter
from service.db.engine import tenant_transaction
from service.db.tenant_settings import write_tenant_settings
from service.errors import DatabaseUnavailable, UnreadableMetadata
from service.types import NodeDraft
from tests.conftest import Upsert
from tests.live_database import LiveDatabase, LiveServer
from tests.sql.adapting import SETTINGS, globex_groups, store, store_both_tenants
from tests.tiny_embedder import TinyEmbedder

EMBEDDER = TinyEmbedder()


@pytest.fixture
def adapter(database: LiveDatabase) -> Iterator[KnowledgeVerseAdapter]:
    """An adapter on a database of its own, where two tenants have a dataset of the same name."""
    store_both_tenants(database)
    with KnowledgeVerseAdapter(
        database.service_url, settings=SETTINGS, embedder=TinyEmbedder()
    ) as opened:
        yield opened


def test_a_dataset_is_searched_as_deep_as_if_it_were_alone(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase
):
    store(database, "acme_corp", globex_groups(), dataset="decoys")
    fields = adapter.get_similar_fields(
        "customer email address", tenant_id="acme_corp", dataset_name="sales_db", top_k=10
    )
    assert len(fields) == 10
    assert "customer_email_address" not in {field.table for field in fields}
    everywhere = adapter.get_similar_fields(
        "customer email address", tenant_id="acme_corp", top_k=1
    )
    assert everywhere[0].table == "customer_email_address"


def test_only_verified_examples_come_where_only_they_are_asked_for(
    adapter: KnowledgeVerseAdapter, upsert: Upsert
):
    draft = NodeDraft(
        "loose",
        "qa_example",
        title="show total revenue",
        metadata={"question": "show total revenue", "sql": "select 1", "verified": False},
    )
    vector = EMBEDDER.embed_query(draft.title)
    upsert(
        "acme_corp",
        [draft],
        embeddings=[vector],
        dataset_name="sales_db",
        embedder_version=EMBEDDER.version,
    )

    def ask(verified: bool | None) -> list[ExampleSpec]:
        return adapter.get_similar_qa_examples(
            "show total revenue", tenant_id="acme_corp", top_k=3, verified=verified
        )

    assert ask(None)[0].sql == "select 1"
    assert {example.verified for example in ask(True)} == {True}
    assert len(ask(True)) == 3
    assert [example.sql for example in ask(False)] == ["select 1"]


def test_nodes_of_a_group_come_only_to_its_members(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase, upsert: Upsert
):
    metadata = {"field_name": "salary", "field_type": "numeric", "table": "payroll"}
    draft = NodeDraft(
        "field:payroll.salary", "field", title="salary", metadata=metadata, acl=["hr"]
    )
    upsert("acme_corp", [draft], dataset_name="sales_db")
    member = KnowledgeVerseAdapter(
        database.engine, settings=SETTINGS, embedder=EMBEDDER, groups=["hr"]
    )
    for reader, expected in ((adapter, False), (member, True)):
        fields = reader.get_similar_fields("salary", tenant_id="acme_corp", top_k=500)
        nodes = reader.get_nodes(tenant_id="acme_corp", metadata={"table": "payroll"})
        tables = reader.get_master_config(tenant_id="acme_corp", dataset_name="sales_db").tables
        assert ("payroll" in {field.table for field in fields}) is expected
        assert bool(nodes) is expected
        assert ("payroll" in {table.table for table in tables}) is expected


def test_the_weights_are_the_tenants_own_unless_they_are_given(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase
):
    def ask(**weights: float) -> list[int]:
        found = adapter.hybrid_search("customer email", tenant_ids=["acme_corp"], **weights)  # type: ignore[arg-type]
        return [each.node.node_id for each in found]

    usual = ask()
    assert usual == ask(bm25_weight=0.4, vector_weight=0.6)
    own = {"hybrid_keyword_weight": 1.0, "hybrid_vector_weight": 0.0}
    with tenant_transaction(database.engine, ["acme_corp"]) as connection:
        write_tenant_settings(connection, "acme_corp", settings=own)
    assert ask() == ask(bm25_weight=1, vector_weight=0) != usual


def test_a_node_whose_metadata_cannot_be_read_is_named(
    adapter: KnowledgeVerseAdapter, upsert: Upsert
):
    bad = NodeDraft("field:bad", "field", title="zzyzx", metadata={"field_name": "zzyzx"})
    [made] = upsert("acme_corp", [bad], dataset_name="sales_db")
    with pytest.raises(UnreadableMetadata, match=rf'node {made.node_id} \("field:bad"'):
        adapter.get_similar_fields("zzyzx", tenant_id="acme_corp", top_k=500)
    with pytest.raises(UnreadableMetadata, match="field:bad"):
        adapter.get_master_config(tenant_id="acme_corp", dataset_name="sales_db")


def test_a_database_that_is_gone_raises(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase, server: LiveServer
):
    adapter.get_similar_fields("email", tenant_id="acme_corp")
    name = sql.Identifier(database.name)
    server.execute(sql.SQL("alter database {} allow_connections false").format(name))
    server.execute(
        sql.SQL("select pg_terminate_backend(pid) from pg_stat_activity where datname = {}").format(
            sql.Literal(database.name)
        )
    )
    with pytest.raises(DatabaseUnavailable):
        adapter.get_similar_fields("email", tenant_id="acme_corp")
