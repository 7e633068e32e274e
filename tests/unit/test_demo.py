"""The demo that ships with the package: its schema stands, its SQL runs on it."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Connection, text

from service.demo import demo_files
from service.ingestion.examples import Example, example_nodes, read_examples
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import Column, Schema, Table, schema_nodes
from service.ingestion.schema_reader import read_live_schema
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase


@pytest.fixture(scope="module")
def schema() -> Schema:
    return read_schema_file(demo_files().schema, database="sales_db")


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    read = read_examples(demo_files().examples, format="jsonl")
    good = [example for example in read if isinstance(example, Example)]
    assert good == read
    return good


@pytest.fixture
def sales(make_database: MakeDatabase, schema: Schema) -> LiveDatabase:
    """An empty database with the tables of the demo."""
    database = make_database(embedding_dim=None)
    with database.admin.begin() as connection:
        for table in schema.tables:
            create_table(connection, table)
        for table in schema.tables:
            add_foreign_keys(connection, table)
    return database


def create_table(connection: Connection, table: Table) -> None:
    columns = [
        f"{each.name} {each.type}{' not null' * (not each.nullable)}" for each in table.columns
    ]
    key = f"primary key ({', '.join(table.primary_key)})"
    connection.exec_driver_sql(f"create table {table.name} ({', '.join([*columns, key])})")


def add_foreign_keys(connection: Connection, table: Table) -> None:
    for key in table.foreign_keys:
        connection.exec_driver_sql(
            f"alter table {table.name} add foreign key ({', '.join(key.columns)})"
            f" references {key.table} ({', '.join(key.target_columns)})"
        )


def all_columns(schema: Schema) -> list[Column]:
    return [column for table in schema.tables for column in table.columns]


def test_the_demo_is_large_enough_to_be_believed(schema: Schema, examples: list[Example]):
    assert len(schema.tables) >= 15
    assert len(all_columns(schema)) >= 100
    assert len(examples) >= 40
    assert sum(len(table.foreign_keys) for table in schema.tables) >= 20


def test_every_table_column_and_example_says_what_it_means(schema: Schema, examples: list[Example]):
    assert all(table.comment and table.primary_key for table in schema.tables)
    assert all(column.comment for column in all_columns(schema))
    assert all(example.explanation and example.tables for example in examples)


def test_every_node_and_link_of_the_demo_has_its_own_identity(
    schema: Schema, examples: list[Example]
):
    made = schema_nodes(schema)
    nodes = [*made.nodes, *example_nodes(examples)]
    assert len({node.external_id for node in nodes}) == len(nodes)
    assert len(set(made.links)) == len(made.links)
    known = {node.external_id for node in nodes}
    assert all(link.source in known and link.target in known for link in made.links)
    assert all(node.parent in known for node in nodes if node.node_type == "field")


def test_every_example_names_the_tables_its_sql_reads(schema: Schema, examples: list[Example]):
    names = {table.name for table in schema.tables}
    for example in examples:
        read = set(re.findall(r"\b(?:from|join) (\w+)", example.sql))
        assert set(example.tables) == names & read, example.question


def test_every_example_is_sql_that_postgresql_can_plan(
    sales: LiveDatabase, examples: list[Example]
):
    with sales.admin.connect() as connection:
        for example in examples:
            plan = connection.execute(text(f"explain {example.sql}")).all()
            assert plan, example.question
            connection.execute(text(example.sql)).all()


def test_every_sample_value_fits_its_column(sales: LiveDatabase, schema: Schema):
    with sales.admin.connect() as connection:
        for column in all_columns(schema):
            for value in column.sample_values:
                cast = text(f"select cast(cast(:value as text) as {column.type})")
                assert connection.scalar(cast, {"value": str(value)}) is not None


def test_the_demo_read_back_from_a_live_database_has_the_same_structure(
    sales: LiveDatabase, schema: Schema
):
    live = read_live_schema(sales.admin_url)
    assert {table.name for table in live.tables} == {table.name for table in schema.tables}
    told, read = (
        {
            table.name: (
                table.primary_key,
                set(table.foreign_keys),
                [(column.name, column.nullable) for column in table.columns],
            )
            for table in each.tables
        }
        for each in (schema, live)
    )
    assert read == told
