"""A live PostgreSQL schema: comments, keys, counts, samples, masks, and nothing written."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from service.db.engine import tenant_transaction
from service.db.nodes import upsert_links
from service.errors import DatabaseUnavailable
from service.ingestion.schema_model import Column, ForeignKey, Schema, Table, schema_nodes
from service.ingestion.schema_reader import read_live_schema
from tests.conftest import MakeLogin, MakeTenant, Upsert
from tests.live_database import LiveDatabase

SHOP = """
create schema sales;
create type mood as enum ('Sad', 'Happy');
create table customers (
    id integer generated always as identity primary key, full_name text not null,
    "contactEmail" text, mood mood, tags text[], extra json, balance numeric(8, 2), token bytea
);
comment on table customers is 'People who buy.';
comment on column customers.full_name is 'Given and family name.';
create table sales.orders (
    order_id integer, line smallint, customer_id integer not null references customers,
    ordered_at timestamp with time zone, place point, primary key (order_id, line)
);
create table sales."Odd % Name" (
    order_id integer, line smallint, foreign key (order_id, line) references sales.orders
);
insert into customers (full_name, "contactEmail", mood, tags, extra, balance, token)
    values ('Ada', 'ada@example.org', 'Sad', '{a,b}', '{"k": 1}', 12.50, 'x'),
           ('Bo', 'bo@example.org', 'Happy', '{}', null, 0, 'y'),
           ('Ada', null, 'Happy', null, null, 'NaN', null);
insert into sales.orders
    values (2, 1, 1, '2024-02-01 10:00+00', '(1,2)'), (1, 1, 2, null, null);
"""


@pytest.fixture
def shop(database: LiveDatabase) -> LiveDatabase:
    with database.admin.begin() as connection:
        connection.exec_driver_sql("create schema shop")
        connection.exec_driver_sql("set local search_path = shop")
        connection.exec_driver_sql(SHOP.replace("%", "%%"))
    return database


def read_tables(database: LiveDatabase, **options: object) -> dict[str, Table]:
    given = {"schemas": ["shop", "sales"], **options}
    schema = read_live_schema(database.admin_url, **given)  # type: ignore[arg-type]
    return {table.qualified_name: table for table in schema.tables}


def find_column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


def samples_of(table: Table, name: str) -> tuple[object, ...]:
    return find_column(table, name).sample_values


def test_comments_types_and_keys(shop: LiveDatabase):
    tables = read_tables(shop)
    assert list(tables) == ["sales.Odd % Name", "sales.orders", "shop.customers"]
    customers, orders = tables["shop.customers"], tables["sales.orders"]
    assert customers.comment == "People who buy."
    assert customers.columns[1] == Column(
        "full_name", "text", "Given and family name.", nullable=False, sample_values=("Ada", "Bo")
    )
    assert find_column(customers, "balance").type == "numeric(8,2)"
    assert find_column(orders, "ordered_at").type == "timestamp with time zone"
    assert orders.primary_key == ("order_id", "line")
    assert orders.foreign_keys == (ForeignKey(("customer_id",), "shop.customers", ("id",)),)
    assert tables["sales.Odd % Name"].foreign_keys == (
        ForeignKey(("order_id", "line"), "sales.orders", ("order_id", "line")),
    )


def test_the_default_schema_goes_unnamed_and_knows_types_of_extensions(shop: LiveDatabase):
    schema = read_live_schema(shop.admin_url)
    tables = {table.qualified_name: table for table in schema.tables}
    nodes = tables["knowledge_nodes"]
    assert find_column(nodes, "embedding").type == "vector(8)"
    assert {key.table for key in nodes.foreign_keys} >= {"knowledge_nodes"}
    assert schema.name == shop.name


def test_samples_come_in_the_order_of_the_primary_key_as_json_can_hold_them(shop: LiveDatabase):
    tables = read_tables(shop)
    customers = tables["shop.customers"]
    assert samples_of(customers, "id") == (1, 2, 3)
    assert samples_of(customers, "mood") == ("Sad", "Happy")
    assert samples_of(customers, "tags") == ('["a", "b"]', "[]")
    assert samples_of(customers, "extra") == ('{"k": 1}',)
    assert samples_of(customers, "balance") == ("12.50", "0.00")
    assert samples_of(tables["sales.orders"], "order_id") == (1, 2)
    assert samples_of(tables["sales.orders"], "place") == ("(1,2)",)


def test_masked_columns_are_never_asked_for(shop: LiveDatabase):
    asked: list[str] = []

    def listen(_c: object, _x: object, statement: str, *_rest: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        customers = read_tables(shop)["shop.customers"]
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert samples_of(customers, "contactEmail") == ()
    assert not any("contactEmail" in statement for statement in asked)


def test_nothing_can_be_written_while_a_schema_is_read(shop: LiveDatabase):
    seen: list[str] = []

    def look(connection: object, cursor: object, statement: str, *_rest: object) -> None:
        if "LIMIT" in statement:
            with connection.connection.driver_connection.cursor() as own:  # type: ignore[attr-defined]
                own.execute("show transaction_read_only")
                seen.append(own.fetchone()[0])

    event.listen(Engine, "before_cursor_execute", look)
    try:
        read_tables(shop)
    finally:
        event.remove(Engine, "before_cursor_execute", look)
    assert set(seen) == {"on"}


def test_large_tables_are_estimated_and_small_ones_counted(shop: LiveDatabase):
    with shop.admin.begin() as connection:
        connection.exec_driver_sql("create table shop.big as select generate_series(1, 30000) as n")
    assert read_tables(shop)["shop.big"].row_count == 30_000  # never analysed: counted
    with shop.admin.begin() as connection:
        connection.exec_driver_sql("analyze shop.big")
    tables = read_tables(shop)
    assert (tables["shop.big"].row_count, tables["shop.big"].row_count_estimated) == (30_000, True)
    assert tables["shop.customers"].row_count == 3
    assert not tables["shop.customers"].row_count_estimated


def test_a_table_one_may_not_read_is_described_without_its_rows(
    shop: LiveDatabase, make_login: MakeLogin, caplog: pytest.LogCaptureFixture
):
    login = make_login("reader", member_of=())
    with shop.admin.begin() as connection:
        connection.exec_driver_sql(f'grant usage on schema shop, sales to "{login}"')
        connection.exec_driver_sql(f'grant select on sales.orders to "{login}"')
    with caplog.at_level(logging.WARNING):
        schema = read_live_schema(shop.url_for(login), schemas=["shop", "sales"])
    tables = {table.qualified_name: table for table in schema.tables}
    assert tables["shop.customers"].row_count is None
    assert samples_of(tables["shop.customers"], "full_name") == ()
    assert tables["sales.orders"].row_count == 2
    assert "rows of table shop.customers not read: permission denied" in caplog.text


def test_a_database_that_is_not_there_is_one_sentence(shop: LiveDatabase):
    with pytest.raises(DatabaseUnavailable, match=r'"nosuch" .*cannot be read') as caught:
        read_live_schema(shop.server.admin_url("nosuch"))
    assert "\n" not in str(caught.value)


def test_a_live_schema_is_stored_with_its_links_and_each_tenant_has_its_own(
    shop: LiveDatabase, make_tenant: MakeTenant, upsert: Upsert
):
    found = Schema(tuple(read_tables(shop).values()))
    made = schema_nodes(found)
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        assert {node.action for node in upsert(tenant, made.nodes)} == {"added"}
        with tenant_transaction(shop.engine, [tenant]) as connection:
            stored = upsert_links(connection, tenant, links=made.links)
        assert {link.action for link in stored} == {"added"}
    assert {node.action for node in upsert("acme", schema_nodes(found).nodes)} == {"unchanged"}
