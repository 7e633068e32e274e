"""KnowledgeVerseAdapter: what QueryForge asks for, from the right tenant, in few round trips."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from service import ExampleSpec, FieldSpec, KnowledgeVerseAdapter
from service.errors import Conflict, InvalidInput, NotFound
from service.specs import JoinSpec
from tests.live_database import LiveDatabase
from tests.sql.adapting import SETTINGS, counting
from tests.tiny_embedder import TinyEmbedder

EMBEDDER = TinyEmbedder()


@pytest.fixture
def adapter(sales: LiveDatabase) -> Iterator[KnowledgeVerseAdapter]:
    """An adapter on a database where two tenants have a dataset of the same name."""
    with KnowledgeVerseAdapter(
        sales.service_url, settings=SETTINGS, embedder=TinyEmbedder()
    ) as opened:
        yield opened


# --- the examples of the contract -------------------------------------------------------------


def test_the_nodes_of_a_dataset_come_in_pages_without_ranking(adapter: KnowledgeVerseAdapter):
    nodes = adapter.get_nodes(tenant_id="acme_corp", dataset_name="sales_db", node_type="field")
    assert {node.node_type for node in nodes} == {"field"}
    assert [node.node_id for node in nodes] == sorted(node.node_id for node in nodes)
    paged, last = [], 0
    while page := adapter.get_nodes(
        tenant_id="acme_corp", dataset_name="sales_db", node_type="field", limit=50, after=last
    ):
        assert len(page) <= 50
        paged += page
        last = page[-1].node_id
    assert paged == nodes
    assert len(nodes) > 100
    [email] = adapter.get_nodes(tenant_id="acme_corp", metadata={"field_name": "email"})
    assert email.external_id == "field:customers.email"


def test_similar_nodes_are_at_least_as_similar_as_the_threshold(adapter: KnowledgeVerseAdapter):
    e = EMBEDDER.embed_query("customer email address")
    every = adapter.get_similar_nodes(query_embedding=e, tenant_id="acme_corp", top_k=10)
    some = adapter.get_similar_nodes(
        query_embedding=e, tenant_id="acme_corp", top_k=10, similarity_threshold=0.7
    )
    scores = [each.vector_score or 0 for each in every]
    assert scores == sorted(scores, reverse=True)
    assert [each.node.node_id for each in some] == [
        each.node.node_id for each in every if each.score >= 0.7
    ]
    assert 0 < len(some) < len(every) == 10


def test_a_hybrid_search_is_sorted_by_its_combined_score(adapter: KnowledgeVerseAdapter):
    e = EMBEDDER.embed_query("customer email address")
    found = adapter.hybrid_search(
        query_text="customer email address",
        query_embedding=e,
        tenant_ids=["acme_corp"],
        node_types=["field"],
        top_k=20,
        bm25_weight=0.4,
        vector_weight=0.6,
    )
    scores = [each.combined_score for each in found]
    assert len(found) == 20
    assert scores == sorted(scores, reverse=True)
    assert {each.node.node_type for each in found} == {"field"}
    embedded_here = adapter.hybrid_search(
        query_text="customer email address", tenant_ids=["acme_corp"], node_types=["field"]
    )
    assert embedded_here == found
    as_list = adapter.hybrid_search(
        query_text="customer email address",
        query_embedding=[float(value) for value in e],
        tenant_ids=["acme_corp"],
        node_types=["field"],
    )
    assert [each.node.node_id for each in as_list] == [each.node.node_id for each in found]


def test_similar_fields_are_specs_with_a_score(adapter: KnowledgeVerseAdapter):
    fields = adapter.get_similar_fields(
        query="customer email", tenant_id="acme_corp", dataset_name="sales_db", top_k=10
    )
    assert len(fields) == 10
    assert all(isinstance(field, FieldSpec) for field in fields)
    scores = [field.score or 0 for field in fields]
    assert scores == sorted(scores, reverse=True)
    every = adapter.get_similar_fields("customer email", tenant_id="acme_corp", top_k=500)
    email = next(field for field in every if field.qualified_name == "customers.email")
    assert email.field_type == "varchar(160)"
    assert email.description
    assert not email.primary_key


def test_similar_examples_are_specs_with_a_score(adapter: KnowledgeVerseAdapter):
    examples = adapter.get_similar_qa_examples(
        query="show total revenue", tenant_id="acme_corp", dataset_name="sales_db", top_k=5
    )
    assert len(examples) == 5
    assert all(isinstance(example, ExampleSpec) for example in examples)
    assert all(example.verified and example.sql and example.explanation for example in examples)
    scores = [example.score or 0 for example in examples]
    assert scores == sorted(scores, reverse=True)


def test_the_schema_comes_whole_or_join_complete_as_the_budget_allows(
    adapter: KnowledgeVerseAdapter,
):
    whole = adapter.get_schema_context(
        "customer email", tenant_id="acme_corp", dataset_name="sales_db"
    )
    assert (whole.mode, len(whole.tables)) == ("whole_schema", 21)
    best = adapter.get_schema_context(
        "customer email", tenant_id="acme_corp", dataset_name="sales_db", token_budget=400
    )
    assert best.mode == "join_complete"
    assert best.token_count <= 400 < whole.token_count
    assert best.left_out
    as_json = adapter.get_schema_context(
        "email", tenant_id="acme_corp", dataset_name="sales_db", token_budget=400, format="json"
    )
    assert as_json.text.startswith('{"tables":[')


def test_the_master_config_has_tables_row_counts_and_joins(adapter: KnowledgeVerseAdapter):
    config = adapter.get_master_config(tenant_id="acme_corp", dataset_name="sales_db")
    assert len(config.tables) == 21
    customers = next(table for table in config.tables if table.table == "customers")
    assert customers.row_count is not None
    assert JoinSpec("orders", ("customer_id",), "customers", ("customer_id",)) in config.joins


# --- other names ------------------------------------------------------------------------------


def test_the_other_names_mean_the_same(adapter: KnowledgeVerseAdapter):
    plain = adapter.get_similar_fields(
        query="customer email", tenant_id="acme_corp", dataset_name="sales_db", top_k=3
    )
    other = adapter.get_similar_fields(
        question="customer email", tenant_id="acme_corp", document_name="sales_db", top_n=3
    )
    assert plain == other
    found = adapter.hybrid_search(question="email", tenant_ids=["acme_corp"], top_n=2)
    assert len(found) == 2
    config = adapter.get_master_config(tenant_id="acme_corp", document_name="sales_db")
    assert config.dataset_name == "sales_db"


def test_a_name_given_twice_or_unknown_is_refused(adapter: KnowledgeVerseAdapter):
    with pytest.raises(InvalidInput, match="another name of top_k"):
        adapter.get_similar_fields("email", tenant_id="acme_corp", top_k=3, top_n=3)
    with pytest.raises(TypeError, match="no argument 'dataset'"):
        adapter.get_similar_fields("email", tenant_id="acme_corp", dataset="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no argument 'question'"):
        adapter.get_nodes(tenant_id="acme_corp", question="x")


# --- two tenants, one dataset name ------------------------------------------------------------

Call = Callable[[KnowledgeVerseAdapter, str], set[str]]

ASK = "customer email address"
CALLS: dict[str, Call] = {
    "get_nodes": lambda a, tenant: {
        each.tenant_id for each in a.get_nodes(tenant_id=tenant, dataset_name="sales_db")
    },
    "get_similar_nodes": lambda a, tenant: {
        each.node.tenant_id
        for each in a.get_similar_nodes(
            EMBEDDER.embed_query(ASK), tenant_id=tenant, dataset_name="sales_db", top_k=500
        )
    },
    "hybrid_search": lambda a, tenant: {
        each.node.tenant_id
        for each in a.hybrid_search(ASK, tenant_ids=[tenant], dataset_name="sales_db", top_k=500)
    },
    "get_similar_fields": lambda a, tenant: {
        _owner(field.table)
        for field in a.get_similar_fields(ASK, tenant_id=tenant, dataset_name="sales_db", top_k=500)
    },
    "get_similar_qa_examples": lambda a, tenant: {
        "globex" if "Globex" in example.explanation else "acme_corp"
        for example in a.get_similar_qa_examples(
            "show total revenue", tenant_id=tenant, dataset_name="sales_db", top_k=500
        )
    },
    "get_schema_context": lambda a, tenant: {
        _owner(table.table)
        for budget in (400, 8000)
        for table in a.get_schema_context(
            ASK, tenant_id=tenant, dataset_name="sales_db", token_budget=budget
        ).tables
    },
    "get_master_config": lambda a, tenant: {
        _owner(table.table)
        for table in a.get_master_config(tenant_id=tenant, dataset_name="sales_db").tables
    },
}


def _owner(table: str) -> str:
    return "globex" if table == "customer_email_address" else "acme_corp"


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("tenant", ["acme_corp", "globex"])
def test_two_tenants_with_the_same_dataset_name_never_mix(
    adapter: KnowledgeVerseAdapter, name: str, tenant: str
):
    assert CALLS[name](adapter, tenant) == {tenant}


@pytest.mark.parametrize("name", CALLS)
def test_a_tenant_that_is_not_there_is_an_error_and_not_an_empty_answer(
    adapter: KnowledgeVerseAdapter, name: str
):
    with pytest.raises(NotFound, match='"initech" does not exist'):
        CALLS[name](adapter, "initech")


# --- filters act inside the search ------------------------------------------------------------


def test_a_relevance_below_the_threshold_is_not_returned(adapter: KnowledgeVerseAdapter):
    strict = adapter.get_similar_fields(
        "customer email", tenant_id="acme_corp", top_k=100, min_relevance=0.9
    )
    loose = adapter.get_similar_fields(
        "customer email", tenant_id="acme_corp", top_k=100, min_relevance=0.5
    )
    assert len(strict) < len(loose) < 100


# --- weights, embedders -----------------------------------------------------------------------


def test_keywords_alone_need_no_model(adapter: KnowledgeVerseAdapter, sales: LiveDatabase):
    broken = SETTINGS.model_copy(update={"embedding_model": "/nowhere"})
    without = KnowledgeVerseAdapter(sales.engine, settings=broken)
    found = without.hybrid_search("email", tenant_ids=["acme_corp"], vector_weight=0, top_k=1)
    assert found[0].node.title == "email"


def test_vectors_of_another_model_are_not_compared(
    adapter: KnowledgeVerseAdapter, sales: LiveDatabase
):
    other = KnowledgeVerseAdapter(
        sales.engine, settings=SETTINGS, embedder=TinyEmbedder(model="other")
    )
    with pytest.raises(Conflict, match="is embedded by tiny"):
        other.get_similar_fields("email", tenant_id="acme_corp")


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.get_similar_fields("", tenant_id="acme_corp"),
        lambda a: a.get_similar_fields("email", tenant_id="acme_corp", top_k=0),
        lambda a: a.get_similar_qa_examples("  ", tenant_id="acme_corp"),
        lambda a: a.hybrid_search(tenant_ids=["acme_corp"]),
        lambda a: a.hybrid_search("x", tenant_ids=[]),
        lambda a: a.hybrid_search("x", tenant_ids="acme_corp"),
        lambda a: a.hybrid_search("x", query_embedding=[1.0, 2.0], tenant_ids=["acme_corp"]),
        lambda a: a.hybrid_search("x", query_embedding="no", tenant_ids=["acme_corp"]),
        lambda a: a.get_similar_nodes([], tenant_id="acme_corp"),
        lambda a: a.get_similar_nodes([np.nan] * 8, tenant_id="acme_corp"),
        lambda a: a.get_similar_nodes([[1.0] * 8], tenant_id="acme_corp"),
        lambda a: a.get_nodes(tenant_id="acme_corp", limit=0),
        lambda a: a.get_nodes(tenant_id="no spaces, please"),
        lambda a: a.get_schema_context("x", tenant_id="acme_corp"),
        lambda a: a.get_schema_context(
            "x", tenant_id="acme_corp", dataset_name="sales_db", format="xml"
        ),
        lambda a: a.get_schema_context(
            "x", tenant_id="acme_corp", dataset_name="sales_db", token_budget=3
        ),
        lambda a: a.get_master_config(tenant_id="acme_corp"),
    ],
)
def test_what_can_never_work_is_refused(
    adapter: KnowledgeVerseAdapter, call: Callable[[KnowledgeVerseAdapter], object]
):
    with pytest.raises(InvalidInput):
        call(adapter)


def test_a_dataset_without_a_schema_is_an_error_where_a_schema_is_asked_for(
    adapter: KnowledgeVerseAdapter,
):
    with pytest.raises(NotFound, match='no schema in dataset "sales"'):
        adapter.get_schema_context("email", tenant_id="acme_corp", dataset_name="sales")
    with pytest.raises(NotFound, match='no schema in dataset "sales"'):
        adapter.get_master_config(tenant_id="acme_corp", dataset_name="sales")
    assert adapter.get_similar_fields("email", tenant_id="acme_corp", dataset_name="sales") == []


# --- round trips, async, import ---------------------------------------------------------------


@pytest.mark.parametrize("name", CALLS)
def test_the_number_of_statements_does_not_grow_with_what_is_found(
    adapter: KnowledgeVerseAdapter, sales: LiveDatabase, name: str
):
    borrowed = KnowledgeVerseAdapter(sales.engine, settings=SETTINGS, embedder=EMBEDDER)
    CALLS[name](borrowed, "globex")  # the connection is checked once
    with counting(sales.engine) as few:
        CALLS[name](borrowed, "globex")
    with counting(sales.engine) as many:
        CALLS[name](borrowed, "acme_corp")
    most = 10 if name == "get_schema_context" else 3
    assert len(few) <= len(many) <= most, many


def test_one_search_sends_three_statements_whatever_top_k_is(
    adapter: KnowledgeVerseAdapter, sales: LiveDatabase
):
    borrowed = KnowledgeVerseAdapter(sales.engine, settings=SETTINGS, embedder=EMBEDDER)
    borrowed.get_similar_fields("email", tenant_id="acme_corp")
    for top_k in (1, 100):
        with counting(sales.engine) as sent:
            found = borrowed.get_similar_fields("email", tenant_id="acme_corp", top_k=top_k)
        assert (len(found), len(sent)) == (top_k, 3)


def test_every_method_can_be_awaited_and_calls_run_side_by_side(adapter: KnowledgeVerseAdapter):
    async def ask() -> list[object]:
        return list(
            await asyncio.gather(
                adapter.aio.get_nodes(tenant_id="acme_corp", limit=3),
                adapter.aio.get_similar_nodes([1.0] * 8, tenant_id="acme_corp", top_k=3),
                adapter.aio.hybrid_search("email", tenant_ids=["acme_corp"], top_k=3),
                adapter.aio.get_similar_fields("email", tenant_id="acme_corp", top_n=3),
                adapter.aio.get_similar_qa_examples(question="x", tenant_id="acme_corp", top_k=3),
                adapter.aio.get_schema_context(
                    "email", tenant_id="acme_corp", dataset_name="sales_db"
                ),
                adapter.aio.get_master_config(tenant_id="acme_corp", dataset_name="sales_db"),
            )
        )

    answers = asyncio.run(ask())
    assert [len(each) for each in answers[:5]] == [3] * 5  # type: ignore[arg-type]
    assert answers[5] == adapter.get_schema_context(
        "email", tenant_id="acme_corp", dataset_name="sales_db"
    )
    public = {name for name in vars(KnowledgeVerseAdapter) if name.startswith(("get_", "hybrid"))}
    assert public <= set(vars(type(adapter.aio)))


def test_a_failure_reaches_the_awaiting_caller(adapter: KnowledgeVerseAdapter):
    with pytest.raises(NotFound):
        asyncio.run(adapter.aio.get_similar_fields("email", tenant_id="initech"))


def test_importing_the_package_loads_neither_database_nor_model():
    code = (
        "import sys, service; service.FieldSpec; service.ExampleSpec;"
        "print([m for m in ('sqlalchemy', 'psycopg', 'numpy', 'torch', 'networkx')"
        " if m in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"
