"""Broken examples are found, marked and not returned; repaired ones come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from service import KnowledgeVerseAdapter
from service.db.engine import owner_transaction, tenant_transaction
from service.db.lookup import list_nodes
from service.db.quarantine import Judgement, set_quarantine
from service.errors import Forbidden, InvalidInput, NotFound
from service.ingestion.check_examples import CheckReport, ExampleCheck
from service.ingestion.convert import group_examples, group_schema
from service.ingestion.examples import Example
from service.ingestion.schema_model import Column, Schema, Table
from service.synthesis.fewshot import find_examples
from service.types import NodeDraft
from tests.conftest import MakeDatabase, Upsert
from tests.live_database import LiveDatabase
from tests.sql.adapting import SETTINGS, store, store_both_tenants
from tests.tiny_embedder import TinyEmbedder

SOUND = Example("How many orders are there?", "select count(*) from orders")
BROKEN = Example("Which orders are late?", "select order_id from orders where due_at < now()")

Check = Callable[..., CheckReport]


@pytest.fixture
def adapter(database: LiveDatabase) -> KnowledgeVerseAdapter:
    store_both_tenants(database)
    store(database, "acme_corp", group_examples("more", [BROKEN]))
    return KnowledgeVerseAdapter(database.engine, settings=SETTINGS, embedder=TinyEmbedder())


@pytest.fixture
def check(adapter: KnowledgeVerseAdapter, database: LiveDatabase) -> Check:
    """check(tenant, dry_run=..., against=...): check the examples of sales_db."""

    def run(
        tenant: str = "acme_corp", *, dry_run: bool = False, against: str | None = None
    ) -> CheckReport:
        return ExampleCheck(database.engine, tenant, "sales_db", dry_run=dry_run).run(
            against=against
        )

    return run


def list_questions(adapter: KnowledgeVerseAdapter, tenant: str = "acme_corp") -> set[str]:
    found = adapter.get_similar_qa_examples(
        BROKEN.question, tenant_id=tenant, dataset_name="sales_db", top_k=500
    )
    return {example.question for example in found}


def test_a_broken_example_is_not_returned_and_all_others_are(
    adapter: KnowledgeVerseAdapter, check: Check
):
    before = list_questions(adapter)
    report = check()
    assert (report.checked, report.quarantined, report.released) == (len(before), 1, 0)
    [broken] = report.broken
    assert broken.question == BROKEN.question
    assert broken.reason == 'No table of it has a column "due_at".'
    assert list_questions(adapter) == before - {BROKEN.question}
    again = check()
    assert (again.quarantined, again.released, len(again.broken)) == (0, 0, 1)


def test_a_quarantined_example_is_no_few_shot_example_either(
    adapter: KnowledgeVerseAdapter, check: Check, database: LiveDatabase
):
    def ask() -> list[str]:
        with tenant_transaction(database.engine, ["acme_corp"]) as connection:
            found = find_examples(
                connection,
                ["acme_corp"],
                question="late?",
                query_vector=TinyEmbedder().embed_query(f"{BROKEN.question} {BROKEN.sql}"),
            )
        return [example.question for example in found]

    assert BROKEN.question in ask()
    check()
    assert BROKEN.question not in ask()


def test_an_example_whose_schema_is_repaired_comes_back(
    adapter: KnowledgeVerseAdapter, check: Check, database: LiveDatabase
):
    check()
    orders = Table("orders", (Column("order_id", "integer"), Column("due_at", "timestamp")))
    store(database, "acme_corp", group_schema(Schema((orders,))))
    report = check()
    assert report.released == 1
    assert BROKEN.question in list_questions(adapter)
    metadata = {"question": BROKEN.question}
    [node] = adapter.get_nodes(tenant_id="acme_corp", metadata=metadata)
    assert {"quarantined", "quarantine_reason"}.isdisjoint(node.metadata)


def test_ingesting_the_same_example_again_keeps_the_mark_and_a_new_sql_loses_it(
    adapter: KnowledgeVerseAdapter, check: Check, database: LiveDatabase
):
    check()
    store(database, "acme_corp", group_examples("again", [BROKEN]))
    assert BROKEN.question not in list_questions(adapter)
    repaired = replace(BROKEN, sql="select order_id from orders")
    store(database, "acme_corp", group_examples("again", [repaired]))
    assert BROKEN.question in list_questions(adapter)
    assert check().broken == ()


def test_a_dry_run_marks_nothing(adapter: KnowledgeVerseAdapter, check: Check):
    report = check(dry_run=True)
    assert (len(report.broken), report.quarantined) == (1, 0)
    assert BROKEN.question in list_questions(adapter)


def test_the_examples_of_another_tenant_are_neither_read_nor_marked(
    adapter: KnowledgeVerseAdapter, check: Check, database: LiveDatabase
):
    store(database, "globex", group_examples("more", [BROKEN]))
    check("acme_corp")
    assert BROKEN.question in list_questions(adapter, "globex")
    report = check("globex")
    assert (report.checked, len(report.broken)) == (2, 1)


def test_an_example_of_a_group_is_checked_too(
    adapter: KnowledgeVerseAdapter, check: Check, upsert: Upsert
):
    metadata = {"question": "Who earns what?", "sql": "select salary from payroll"}
    draft = NodeDraft("hidden", "qa_example", title="x", metadata=metadata, acl=["hr"])
    upsert("acme_corp", [draft], dataset_name="sales_db")
    reasons = {each.external_id: each.reason for each in check().broken}
    assert reasons["hidden"] == 'There is no table "payroll".'


def test_an_example_that_cannot_be_read_is_quarantined_so_that_others_can(
    adapter: KnowledgeVerseAdapter, check: Check, upsert: Upsert
):
    upsert("acme_corp", [NodeDraft("odd", "qa_example", title="odd one")], dataset_name="sales_db")
    reasons = {each.external_id: each.reason for each in check().broken}
    assert "question: Field required" in reasons["odd"]
    assert list_questions(adapter)


def test_a_live_database_is_asked_to_plan_the_queries_and_runs_none(
    adapter: KnowledgeVerseAdapter,
    check: Check,
    database: LiveDatabase,
    make_database: MakeDatabase,
):
    hostile = [
        Example("Drop it?", "select 1; drop table orders"),
        Example("Analyse it?", "(analyze) select nextval('tickets')"),
        Example("Delete it?", "with gone as (delete from orders returning 1) select * from gone"),
        Example("Raise it?", "select nextval('tickets')"),
    ]
    store(database, "globex", group_examples("more", [SOUND, *hostile]))
    live = make_database(embedding_dim=None)
    with live.admin.begin() as connection:
        connection.exec_driver_sql("create table orders (order_id int)")
        connection.exec_driver_sql("insert into orders values (1)")
        connection.exec_driver_sql("create sequence tickets")
    report = check("globex", against=live.admin_url)
    reasons = {each.question: each.reason for each in report.broken}
    assert reasons["show total revenue"] == (
        'The database refuses it: relation "customer_email_address" does not exist.'
    )
    assert SOUND.question not in reasons
    assert reasons["Drop it?"] == "It is 2 statements, not one."
    assert reasons["Analyse it?"].startswith(("It cannot be parsed", "It is no query"))
    with live.admin.begin() as connection:
        assert connection.exec_driver_sql("select count(*) from orders").scalar() == 1
        assert connection.exec_driver_sql("select is_called from tickets").scalar() is False


def test_what_cannot_be_checked_raises(adapter: KnowledgeVerseAdapter, database: LiveDatabase):
    with pytest.raises(NotFound, match='no schema in dataset "elsewhere"'):
        ExampleCheck(database.engine, "acme_corp", "elsewhere").run()
    with pytest.raises(NotFound, match="does not exist"):
        ExampleCheck(database.engine, "initech", "sales_db").run()
    with pytest.raises(InvalidInput, match='"klingon" is no dialect'):
        ExampleCheck(database.engine, "acme_corp", "sales_db").run(dialect="klingon")


# --- the marks --------------------------------------------------------------------------------


def test_a_node_that_changed_since_it_was_judged_is_not_marked(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase
):
    with tenant_transaction(database.engine, ["globex"]) as connection:
        [node] = list_nodes(connection, "globex", node_types=["qa_example"])
        stale = replace(node, content_hash=b"other")
        assert set_quarantine(connection, "globex", judgements=[Judgement(stale, "broken")]) == {}
        made = set_quarantine(connection, "globex", judgements=[Judgement(node, "broken")])
        assert made == {node.node_id: True}


def test_a_tenant_cannot_mark_the_nodes_of_another(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase
):
    with tenant_transaction(database.engine, ["globex"]) as connection:
        [node] = list_nodes(connection, "globex", node_types=["qa_example"])
    with tenant_transaction(database.engine, ["acme_corp"]) as connection:
        made = set_quarantine(connection, "acme_corp", judgements=[Judgement(node, "broken")])
        assert made == {}
    with (
        pytest.raises(Forbidden),
        tenant_transaction(database.engine, ["acme_corp"]) as connection,
    ):
        set_quarantine(connection, "globex", judgements=[Judgement(node, "broken")])
    with owner_transaction(database.admin) as connection:
        marked = connection.exec_driver_sql(
            "select count(*) from knowledge_nodes where metadata ? 'quarantined'"
        ).scalar()
    assert marked == 0


def test_lists_of_different_lengths_are_refused(
    adapter: KnowledgeVerseAdapter, database: LiveDatabase
):
    with (
        pytest.raises(InvalidInput, match="differ in length"),
        tenant_transaction(database.engine, ["acme_corp"]) as connection,
    ):
        connection.exec_driver_sql(
            "select * from set_quarantine('acme_corp', array[1], array[]::bytea[], array['x'])"
        )
