"""A schema as text within a budget: what is shown, that it fits, that its joins are complete."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.demo import demo_files
from service.errors import InvalidInput, UnreadableMetadata
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import (
    Column,
    ForeignKey,
    Schema,
    Table,
    schema_nodes,
)
from service.retrieval.catalog import Catalog, read_catalog, read_example, read_field
from service.retrieval.ddl import render_ddl, render_json
from service.retrieval.schema_context import Measure, fit_best_fields, fit_whole_schema
from service.specs import FieldSpec, JoinSpec, ReferenceSpec, TableSpec
from service.tokens import count_tokens
from service.types import Json, Node, NodeDraft


def to_nodes(drafts: tuple[NodeDraft, ...]) -> list[Node]:
    """Drafts as they would be read back."""
    return [
        make_node(draft.node_type, dict(draft.metadata), node_id=number, place=draft.order_index)
        for number, draft in enumerate(drafts, start=1)
    ]


def make_node(
    node_type: str, metadata: dict[str, Json], *, node_id: int = 7, place: int | None = None
) -> Node:
    return Node(
        node_id=node_id,
        tenant_id="acme",
        external_id=f"{node_type}:{node_id}",
        dataset_name="shop",
        node_type=node_type,
        title="",
        summary="",
        content="",
        metadata=metadata,
        parent_id=None,
        section_path=None,
        order_index=place,
        header=None,
        doc_title=None,
        url=None,
        lang=None,
        space_id=None,
        token_count=None,
        content_hash=b"",
    )


def read_schema(schema: Schema) -> Catalog:
    return read_catalog(to_nodes(schema_nodes(schema).nodes))


@pytest.fixture(scope="module")
def sales() -> Catalog:
    return read_schema(read_schema_file(demo_files().schema))


def find_fields(catalog: Catalog, *names: str) -> list[FieldSpec]:
    known = {
        field.qualified_name: field for table in catalog.tables.values() for field in table.fields
    }
    return [known[name] for name in names]


SALES_FIELDS = [
    f"{table.name}.{column.name}"
    for table in read_schema_file(demo_files().schema).tables
    for column in table.columns
]


# --- reading nodes ----------------------------------------------------------------------------


def test_a_field_node_becomes_a_field_with_all_its_facts():
    column = Column("customer_id", "integer", "Who ordered.", False, (1, 2))
    key = ForeignKey(("customer_id",), "people", ("id",))
    table = Table("orders", (column,), primary_key=("customer_id",), foreign_keys=(key,))
    _, node = to_nodes(schema_nodes(Schema((table,))).nodes)
    assert read_field(node, score=0.5) == FieldSpec(
        field_name="customer_id",
        field_type="integer",
        description="Who ordered.",
        sample_values=(1, 2),
        table="orders",
        nullable=False,
        primary_key=True,
        foreign_key=ReferenceSpec("people", "id"),
        score=0.5,
        node_id=node.node_id,
    )
    assert read_field(node).qualified_name == "orders.customer_id"


def test_a_field_written_by_others_needs_only_a_name_and_a_type():
    field = read_field(make_node("field", {"field_name": "a", "field_type": "int", "mine": 1}))
    assert (field.field_name, field.table, field.sample_values) == ("a", "", ())
    assert field.qualified_name == "a"


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({}, "field_name"),
        ({"field_name": "a"}, "field_type"),
        ({"field_name": "a", "field_type": 3}, "field_type"),
        ({"field_name": "a", "field_type": "int", "sample_values": "x"}, "sample_values"),
        ({"field_name": "a", "field_type": "int", "foreign_key": {"table": "b"}}, "foreign_key"),
    ],
)
def test_unreadable_metadata_is_refused_by_the_name_of_its_node(
    metadata: dict[str, Json], place: str
):
    with pytest.raises(UnreadableMetadata, match=r'node 7 \("field:7".*"acme"') as caught:
        read_field(make_node("field", metadata))
    assert place in caught.value.message


def test_an_example_without_sql_is_refused_by_the_name_of_its_node():
    with pytest.raises(UnreadableMetadata, match=r"node 7 .* sql: Field required"):
        read_example(make_node("qa_example", {"question": "How many?"}))


def test_fields_without_a_table_node_make_a_table_with_its_keys():
    fields: list[dict[str, Json]] = [
        {"field_name": "b", "field_type": "int", "table": "t", "primary_key": True},
        {
            "field_name": "a",
            "field_type": "int",
            "table": "t",
            "foreign_key": {"table": "u", "column": "id"},
        },
    ]
    nodes = [
        make_node("field", metadata, node_id=place, place=-place)
        for place, metadata in enumerate(fields)
    ]
    table = read_catalog(nodes).tables["t"]
    assert [field.field_name for field in table.fields] == ["a", "b"]  # by their place
    assert table.primary_key == ("b",)
    assert table.joins == (JoinSpec("t", ("a",), "u", ("id",)),)


def test_a_field_without_a_table_has_no_place_in_a_schema():
    with pytest.raises(UnreadableMetadata, match="names no table"):
        read_catalog([make_node("field", {"field_name": "a", "field_type": "int"})])


# --- as text ----------------------------------------------------------------------------------


def test_the_ddl_has_types_keys_comments_and_samples():
    tables = [
        TableSpec(
            "sales.order",
            "What was bought.",
            row_count=1200,
            row_count_estimated=True,
            primary_key=("Id", "line"),
            joins=(
                JoinSpec("sales.order", ("who",), "people", ("id",)),
                JoinSpec("sales.order", ("who",), "payers", ("id",)),
                JoinSpec("sales.order", ("Id", "line"), "lines", ("a", "b")),
            ),
            fields=(
                FieldSpec("Id", "integer", nullable=False),
                FieldSpec("line", "integer", "Place.", (1, True, 2.5)),
                FieldSpec("who", "text", sample_values=("O'Neil",)),
            ),
        )
    ]
    assert render_ddl(tables) == (
        'create table sales."order" ( -- What was bought; about 1200 rows\n'
        '  "Id" integer not null,\n'
        "  line integer, -- Place; e.g. 1, true, 2.5\n"
        "  who text references people (id), -- e.g. 'O''Neil'\n"
        '  primary key ("Id", line),\n'
        "  foreign key (who) references payers (id),\n"
        '  foreign key ("Id", line) references lines (a, b)\n'
        ");"
    )


def test_the_ddl_of_the_demo_is_understood_by_a_database(sales: Catalog):
    with sqlite3.connect(":memory:") as database:
        database.executescript(render_ddl(list(sales.tables.values())))
        names = [row[0] for row in database.execute("select name from sqlite_schema")]
    database.close()
    assert set(sales.tables) <= set(names)


def test_a_line_break_in_a_description_does_not_leave_its_comment():
    field = FieldSpec("a", "int", "x\n); drop table t; --\u2028y", ("1\r\n2",))
    text = render_ddl([TableSpec("t", "one\ntwo", fields=(field,))])
    assert text.splitlines() == [
        "create table t ( -- one two",
        "  a int -- x ); drop table t; -- y; e.g. '1 2'",
        ");",
    ]


def test_the_json_has_the_same_facts_and_nothing_empty(sales: Catalog):
    loaded = json.loads(render_json(list(sales.tables.values())))
    orders = next(table for table in loaded["tables"] if table["table"] == "orders")
    assert orders["primary_key"] == ["order_id"]
    assert "orders.customer_id = customers.customer_id" in orders["joins"]
    assert orders["fields"][0]["name"] == "order_id"
    assert all(
        value not in ("", [], None) for field in orders["fields"] for value in field.values()
    )


# --- within a budget --------------------------------------------------------------------------


def measure(budget: int) -> Measure:
    return Measure(render_ddl, count_tokens, budget)


def test_a_schema_that_fits_comes_whole_and_its_tokens_are_counted(sales: Catalog):
    tokens = count_tokens(render_ddl(list(sales.tables.values())))
    whole = fit_whole_schema(sales, measure(tokens))
    assert whole is not None
    assert (whole.mode, whole.token_count, whole.left_out) == ("whole_schema", tokens, ())
    assert len(whole.tables) == len(sales.tables)
    assert fit_whole_schema(sales, measure(tokens - 1)) is None


def test_the_table_between_two_found_tables_comes_along_with_its_keys(sales: Catalog):
    ranked = find_fields(sales, "products.name", "orders.ordered_at")
    context = fit_best_fields(sales, ranked, measure=measure(2000))
    assert context.mode == "join_complete"
    assert [table.table for table in context.tables] == ["products", "orders", "order_items"]
    items = context.tables[2]
    assert [field.field_name for field in items.fields] == ["order_id", "line_number", "product_id"]
    assert {join.target_table for join in items.joins} == {"orders", "products"}
    products = context.tables[0]
    assert [field.field_name for field in products.fields] == ["product_id", "name"]
    assert products.joins == ()  # its key to categories leads out of what is shown


def test_a_key_of_a_table_to_itself_is_shown_where_its_column_is(sales: Catalog):
    [with_key] = fit_best_fields(
        sales, find_fields(sales, "employees.manager_id"), measure=measure(500)
    ).tables
    [without] = fit_best_fields(
        sales, find_fields(sales, "employees.first_name"), measure=measure(500)
    ).tables
    assert [join.target_table for join in with_key.joins] == ["employees"]
    assert without.joins == ()


def test_what_does_not_fit_is_named_and_a_smaller_field_behind_it_may_still_fit(sales: Catalog):
    ranked = find_fields(sales, "customers.email", "products.name", "customers.phone_number")
    roomy = fit_best_fields(sales, [ranked[0], ranked[2]], measure=measure(2000))
    tight = fit_best_fields(sales, ranked, measure=measure(roomy.token_count))
    assert tight.left_out == ("products.name",)
    assert tight.text == roomy.text


def test_a_field_of_a_table_that_is_not_in_the_schema_is_passed_over(sales: Catalog):
    known = find_fields(sales, "customers.email")
    strange = [replace(known[0], table="born_since")]
    context = fit_best_fields(sales, [*strange, *known], measure=measure(500))
    assert [table.table for table in context.tables] == ["customers"]


def test_a_budget_that_holds_nothing_is_refused(sales: Catalog):
    with pytest.raises(InvalidInput, match="A budget of 5 tokens holds none"):
        fit_best_fields(sales, find_fields(sales, "customers.email"), measure=measure(5))
    with pytest.raises(InvalidInput, match="holds not the whole schema"):
        fit_best_fields(sales, [], measure=measure(500))


@given(
    names=st.lists(st.sampled_from(SALES_FIELDS), min_size=1, max_size=12, unique=True),
    budget=st.integers(min_value=40, max_value=900),
    as_json=st.booleans(),
)
def test_no_context_exceeds_its_budget_and_every_context_is_joined(
    sales: Catalog, names: list[str], budget: int, as_json: bool
):
    render = render_json if as_json else render_ddl
    try:
        context = fit_best_fields(
            sales, find_fields(sales, *names), measure=Measure(render, count_tokens, budget)
        )
    except InvalidInput:
        return
    assert context.token_count == count_tokens(context.text) <= budget
    shown = [table.table for table in context.tables]
    asked = [name.rpartition(".")[0] for name in names if name not in context.left_out]
    assert set(sales.graph.complete(shown)) == set(shown) >= set(asked)
    columns = {field.qualified_name for table in context.tables for field in table.fields}
    assert {name for name in names if name not in context.left_out} <= columns
