"""What is wrong with a query on a schema, and what is not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from service.demo import demo_files
from service.errors import InvalidInput
from service.ingestion.example_sql import Columns, check_dialect, find_flaw
from service.ingestion.examples import Example, read_examples
from service.ingestion.live_queries import find_live_flaw
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_reader import open_live_database

SHOP: Columns = {
    "customers": {"id", "name", "city"},
    "orders": {"id", "customer_id", "total", "ordered_at"},
    "sales.returns": {"order_id", "reason"},
}


def flaw(sql: str, *, dialect: str = "postgres") -> str | None:
    return find_flaw(sql, SHOP, dialect=dialect)


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from orders",
        "SELECT Customers.NAME FROM public.Customers;",
        'select "name" from customers c where c.id in (select customer_id from orders)',
        "select o.* from orders as o join customers as c on c.id = o.customer_id",
        "select name from customers c where exists"
        " (select 1 from orders where customer_id = c.id and city <> 'Rome')",
        "select city, sum(total) as revenue from customers c join orders on customer_id = c.id"
        " group by city having sum(total) > 3 order by revenue desc",
        "with big as (select customer_id, total from orders where total > 9)"
        " select c.name, big.total from big join customers c on c.id = big.customer_id",
        "with recursive t as (select id from orders union all select t.id + 1 from t)"
        " select id from t",
        "select r.reason from returns as r",
        "select reason from sales.returns",
        "select day from generate_series(date '2024-01-01', date '2024-02-01', '1 day') as day",
        "select ctid from orders",
        "select id from orders union select id from customers order by id",
        "select rank() over (order by total) as place, o.id from orders as o",
        "select x.a from (values (1), (2)) as x (a)",
        "select l.total from customers c, lateral"
        " (select total from orders where customer_id = c.id limit 1) as l",
    ],
)
def test_a_query_that_fits_has_no_flaw(sql: str):
    assert flaw(sql) is None


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select count(* from orders", "It cannot be parsed: Expecting )"),
        ("", "It is 0 statements, not one."),
        ("select 1; drop table orders", "It is 2 statements, not one."),
        ("delete from orders", "It is no query."),
        ("select * from invoices", 'There is no table "invoices".'),
        ("select * from other.orders", 'There is no table "other.orders".'),
        ("select id from orders where id in (select id from bills)", 'There is no table "bills".'),
        ("select due from orders", 'No table of it has a column "due".'),
        ("select o.due from orders as o", 'Table "orders" has no column "due".'),
        ("select z.id from orders as o", '"z" is no table of it.'),
        ("select id from orders order by due", 'No table of it has a column "due".'),
        (
            "select b.name from (select id from customers) as b",
            'Table "b" has no column "name".',
        ),
        (
            "with big as (select total from orders) select big.city from big",
            'Table "big" has no column "city".',
        ),
        (
            "select name from customers c where exists"
            " (select 1 from orders where customer_id = c.number)",
            'Table "customers" has no column "number".',
        ),
    ],
)
def test_what_does_not_fit_is_named(sql: str, reason: str):
    found = flaw(sql)
    assert found is not None
    assert found.startswith(reason)


def test_double_quotes_may_be_text_in_sqlite_only():
    sql = 'select name from customers where city = "Rome"'
    assert flaw(sql, dialect="sqlite") is None
    assert flaw(sql) == 'No table of it has a column "rome".'


def test_a_table_whose_bare_name_stands_in_two_schemas_is_not_guessed():
    columns: Columns = {"a.orders": {"id"}, "b.orders": {"id"}}
    assert find_flaw("select id from orders", columns, dialect="postgres") is not None
    assert find_flaw("select id from b.orders", columns, dialect="postgres") is None


def test_every_example_of_the_demo_fits_and_none_fits_without_a_column_it_uses():
    files = demo_files()
    columns = {
        table.name: {column.name for column in table.columns}
        for table in read_schema_file(files.schema).tables
    }
    rows = read_examples(files.examples, format="jsonl")
    examples = [row for row in rows if isinstance(row, Example)]
    assert [each.question for each in examples if _flaw_of(each, columns)] == []
    lost = {**columns, "orders": columns["orders"] - {"status"}}
    users = [each for each in examples if "o.status" in each.sql]
    assert users
    assert all(_flaw_of(each, lost) for each in users)


def _flaw_of(example: Example, columns: Columns) -> str | None:
    return find_flaw(example.sql, columns, dialect="postgres")


def test_a_dialect_nobody_speaks_is_refused():
    assert check_dialect("sqlite") == "sqlite"
    with pytest.raises(InvalidInput, match='"klingon" is no dialect'):
        check_dialect("klingon")


def test_a_live_sqlite_file_plans_queries_without_running_them(tmp_path: Path):
    place = tmp_path / "shop.db"
    with sqlite3.connect(place) as shop:
        shop.execute("create table orders (id integer)")
    shop.close()
    with open_live_database(f"sqlite:///{place}") as connection:
        assert find_live_flaw(connection, "select id from orders;") is None
        assert find_live_flaw(connection, "select due from orders") == (
            "The database refuses it: no such column: due."
        )
        assert find_live_flaw(connection, "insert into orders values (1)") == "It is no query."
        assert find_live_flaw(connection, "select count(*) from orders") is None
