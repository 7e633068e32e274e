"""Schemas from SQLite and JSON, and the nodes they become."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from service.errors import DatabaseUnavailable, InvalidInput, NotFound
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import (
    Column,
    ForeignKey,
    Schema,
    Table,
    prefix_tables,
    schema_nodes,
)
from service.ingestion.schema_reader import read_live_schema

SPIDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "spider" / "tables.json"

SHOP = """
create table Customers (
    id integer primary key, full_name text not null, email text, userPassword text, photo blob
);
create table orders (
    id integer primary key, customer_id integer not null references customers (ID),
    billed_to integer references Customers, status varchar(10), note text, odd_day date
);
create table order_tags (order_id integer references orders (id), tag text, extra,
    primary key (order_id, tag));
insert into Customers values (1, 'Ada', 'ada@example.org', 'hunter2', x'00ff'),
    (2, 'Bo', 'bo@example.org', 'secret', null);
insert into orders values (1, 1, 2, 'open', null, 'someday'), (2, 1, null, 'open', '', 'never'),
    (3, 2, 2, 'shipped', printf('%.*c', 5000, 'x'), null), (4, 2, 1, 'lost', 'a  b', null);
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An SQLite file with customers, orders and their tags."""
    path = tmp_path / "my shop 100%?.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    connection.close()
    return path


def read_shop(path: Path, **options: object) -> dict[str, Table]:
    schema = read_live_schema(f"sqlite:///{quote(path)}", **options)  # type: ignore[arg-type]
    return {table.name: table for table in schema.tables}


def quote(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3F")


def find_column(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


# --- nodes ------------------------------------------------------------------------------------


def two_tables() -> Schema:
    people = Table("people", (Column("id", "integer"),), primary_key=("id",), comment="Who buys.")
    orders = Table(
        "orders",
        (
            Column("id", "integer", nullable=False),
            Column("customer_id", "integer", "Who ordered.", sample_values=(1, 2, 3)),
            Column("payer_id", "integer"),
            Column("follows_id", "integer"),
        ),
        row_count=12,
        primary_key=("id",),
        foreign_keys=(
            ForeignKey(("customer_id",), "people", ("id",)),
            ForeignKey(("payer_id",), "people", ("id",)),
            ForeignKey(("follows_id",), "orders", ("id",)),
        ),
    )
    return Schema((people, orders), name="shop")


def test_a_table_node_lists_its_columns_and_keys():
    node = schema_nodes(two_tables()).nodes[2]
    assert (node.external_id, node.node_type, node.title) == ("table:orders", "table", "orders")
    assert node.content == (
        "table orders with columns id integer primary key; "
        "customer_id integer references id of people (Who ordered); "
        "payer_id integer references id of people; follows_id integer references id of orders"
    )
    assert node.metadata["row_count"] == 12
    assert node.metadata["primary_key"] == ["id"]
    assert node.metadata["columns"][1] == {  # type: ignore[index]
        "name": "customer_id",
        "type": "integer",
    }


def test_a_field_node_says_where_it_stands_and_what_it_refers_to():
    node = schema_nodes(two_tables()).nodes[4]
    assert (node.external_id, node.parent) == ("field:orders.customer_id", "table:orders")
    assert (node.title, node.summary, node.order_index) == ("customer_id", "Who ordered.", 1)
    assert node.content == (
        "column customer_id of table orders, type integer, references id of people, "
        "for example 1, 2, 3"
    )
    assert node.metadata == {
        "table": "orders",
        "field_name": "customer_id",
        "qualified_name": "orders.customer_id",
        "field_type": "integer",
        "description": "Who ordered.",
        "sample_values": [1, 2, 3],
        "nullable": True,
        "primary_key": False,
        "foreign_key": {"table": "people", "column": "id"},
    }


def test_foreign_keys_link_tables_once_and_every_field_but_no_table_to_itself():
    links = schema_nodes(two_tables()).links
    assert [(link.source, link.target) for link in links] == [
        ("table:orders", "table:people"),
        ("field:orders.customer_id", "field:people.id"),
        ("field:orders.payer_id", "field:people.id"),
        ("field:orders.follows_id", "field:orders.id"),
    ]
    assert {(link.link_type, link.weight) for link in links} == {("foreign_key", 1.0)}


def test_a_key_that_leaves_the_schema_stays_in_the_metadata_and_gives_no_link():
    key = ForeignKey(("a",), "elsewhere.t", ("id",))
    made = schema_nodes(Schema((Table("t", (Column("a", "int"),), foreign_keys=(key,)),)))
    assert made.links == ()
    assert made.nodes[1].metadata["foreign_key"] == {"table": "elsewhere.t", "column": "id"}


def test_a_schema_and_a_database_before_it_stand_in_the_identity():
    table = Table("orders", (Column("id", "integer"),), schema="sales")
    plain = schema_nodes(Schema((table,))).nodes
    assert [node.external_id for node in plain] == ["table:sales.orders", "field:sales.orders.id"]
    apart = schema_nodes(prefix_tables(Schema((table,)), "db1")).nodes
    assert apart[1].external_id == "field:db1.sales.orders.id"
    assert apart[1].parent == apart[0].external_id == "table:db1.sales.orders"
    assert apart[1].metadata["qualified_name"] == "db1.sales.orders.id"


def test_the_text_of_a_node_has_no_name_with_dots_which_text_search_would_not_split():
    key = ForeignKey(("doc",), "sales.docs", ("id",))
    table = Table("orders", (Column("doc", "integer"),), schema="sales", foreign_keys=(key,))
    described, field = schema_nodes(Schema((table,))).nodes
    assert field.content == (
        "column doc of table orders in sales, type integer, references id of docs in sales"
    )
    assert described.content.startswith("table orders in sales with columns doc integer ")


def test_keys_stay_within_the_database_that_is_put_before_the_tables():
    plain, apart = (schema_nodes(each) for each in (two_tables(), prefix_tables(two_tables(), "x")))
    assert [(link.source, link.target) for link in apart.links] == [
        tuple(end.replace(":", ":x.", 1) for end in (link.source, link.target))
        for link in plain.links
    ]


# --- SQLite -----------------------------------------------------------------------------------


def test_tables_columns_and_keys_of_an_sqlite_file(shop: Path):
    tables = read_shop(shop)
    assert list(tables) == ["Customers", "order_tags", "orders"]
    orders = tables["orders"]
    assert orders.primary_key == ("id",)
    assert tables["order_tags"].primary_key == ("order_id", "tag")
    assert orders.row_count == 4
    assert find_column(orders, "status").type == "varchar(10)"
    assert not find_column(orders, "customer_id").nullable
    assert find_column(tables["order_tags"], "extra").type
    assert read_live_schema(f"sqlite:///{quote(shop)}").name == shop.stem


def test_a_foreign_key_is_found_whatever_its_case(shop: Path):
    keys = {key.columns: key for key in read_shop(shop)["orders"].foreign_keys}
    assert keys["customer_id",] == ForeignKey(("customer_id",), "Customers", ("id",))
    assert keys["billed_to",].target_columns == ("id",)


def test_samples_are_distinct_short_and_readable(shop: Path):
    orders = read_shop(shop)["orders"]
    assert find_column(orders, "status").sample_values == ("open", "shipped", "lost")
    long, spaced = find_column(orders, "note").sample_values
    assert len(str(long)) == 60
    assert str(long).endswith("…")
    assert spaced == "a b"
    assert find_column(orders, "odd_day").sample_values == ("someday", "never")


def test_samples_are_capped_and_may_be_left_out(shop: Path):
    assert find_column(read_shop(shop, samples=2)["orders"], "id").sample_values == (1, 2)
    tables = read_shop(shop, samples=0)
    assert not any(column.sample_values for each in tables.values() for column in each.columns)
    assert tables["orders"].row_count == 4


def test_masked_and_binary_columns_give_no_samples(shop: Path):
    customers = read_shop(shop)["Customers"]
    shown = {column.name for column in customers.columns if column.sample_values}
    assert shown == {"id", "full_name"}


def test_a_mask_of_ones_own_replaces_the_default(shop: Path):
    customers = read_shop(shop, mask=["name$"])["Customers"]
    assert find_column(customers, "full_name").sample_values == ()
    assert find_column(customers, "email").sample_values == ("ada@example.org", "bo@example.org")


@pytest.mark.parametrize("name", ["classname", "shopping", "campaign_spin", "dobro", "title"])
def test_the_default_mask_leaves_ordinary_names_alone(tmp_path: Path, name: str):
    path = tmp_path / "one.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table t ({name} text, ssn text, userSSN text, home_fax text)")
        connection.execute("insert into t values ('a', 'b', 'c', 'd')")
    connection.close()
    shown = [each.name for each in read_shop(path)["t"].columns if each.sample_values]
    assert shown == [name]


def test_progress_counts_the_tables(shop: Path):
    heard: list[tuple[int, int]] = []
    read_shop(shop, on_progress=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_reading_does_not_touch_the_file(shop: Path):
    before = shop.read_bytes()
    read_shop(shop)
    assert shop.read_bytes() == before
    assert [path.name for path in shop.parent.iterdir()] == [shop.name]


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("not a url", InvalidInput, "cannot be understood"),
        ("nosuch://h/d", InvalidInput, '"nosuch" is no kind of database'),
        ("mssql+pymssql://u:hunter2@h/d", InvalidInput, 'driver "pymssql"'),
        ("sqlite+aiosqlite://", InvalidInput, "aiosqlite"),
        ("sqlite:///nowhere/no.db", NotFound, 'no SQLite file "nowhere/no.db"'),
        (
            "postgresql://u:hunter2@127.0.0.1:1/d",
            DatabaseUnavailable,
            'The database "d" on 127.0.0.1 cannot be read',
        ),
    ],
)
def test_a_database_that_cannot_be_read_is_one_sentence(
    url: str, error: type[Exception], words: str
):
    with pytest.raises(error, match=words) as caught:
        read_live_schema(url)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path):
    path = tmp_path / "text.db"
    path.write_text("no database at all, but long enough to be looked at " * 20)
    with pytest.raises(DatabaseUnavailable, match='"text" cannot be read: file is not a database'):
        read_live_schema(f"sqlite:///{path}")


def test_an_unknown_schema_and_a_broken_mask_are_named(shop: Path):
    with pytest.raises(NotFound, match='no schema "sales"'):
        read_shop(shop, schemas=["sales"])
    with pytest.raises(InvalidInput, match=r'mask "\(" is no regular expression'):
        read_shop(shop, mask=["("])


def test_a_schema_asked_for_by_name_stands_before_its_tables(shop: Path):
    tables = read_shop(shop, schemas=["main"])
    assert tables["orders"].qualified_name == "main.orders"
    assert {key.table for key in tables["orders"].foreign_keys} == {"main.Customers"}


# --- JSON -------------------------------------------------------------------------------------

DOCS = {"name": "docs", "schema": "sales", "columns": [{"name": "id", "type": "integer"}]}
PAIRS = {
    "name": "tiny",
    "tables": [
        {
            "name": "lines",
            "schema": "sales",
            "comment": "One row a line.",
            "row_count": 7,
            "primary_key": ["doc", "line"],
            "columns": [
                {"name": "doc", "type": "integer", "references": "sales.docs.id"},
                {"name": "line", "type": "integer", "nullable": False, "sample_values": [1, "b"]},
            ],
        },
        DOCS,
        {
            "name": "notes",
            "columns": [{"name": "d", "type": "integer"}, {"name": "l", "type": "integer"}],
            "foreign_keys": [
                {"columns": ["d", "l"], "table": "sales.lines", "target_columns": ["doc", "line"]}
            ],
        },
    ],
}


def test_a_file_in_our_shape():
    schema = read_schema_file(b"\xef\xbb\xbf" + json.dumps(PAIRS).encode(), database="tiny")
    lines, _, notes = schema.tables
    assert (schema.name, lines.row_count, lines.comment) == ("tiny", 7, "One row a line.")
    assert lines.foreign_keys == (ForeignKey(("doc",), "sales.docs", ("id",)),)
    assert lines.columns[1] == Column("line", "integer", nullable=False, sample_values=(1, "b"))
    assert notes.foreign_keys == (ForeignKey(("d", "l"), "sales.lines", ("doc", "line")),)
    assert len(schema_nodes(schema).links) == 5


def one_table(**changes: object) -> bytes:
    table = {"name": "t", "columns": [{"name": "a", "type": "int"}], **changes}
    return json.dumps({"tables": [table]}).encode()


def one_column(**changes: object) -> bytes:
    return one_table(columns=[{"name": "a", "type": "int", **changes}])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"tables":\n [,]}', "not JSON: expected value at line 2 column 3"),
        (b'{"tables": ["\xff"]}', "not JSON: invalid unicode code point at line 1 column 14"),
        (b"", "not JSON"),
        (b"7", "its top level"),
        (b"[]", "list without databases"),
        (b'{"tables": [{"name": "t", "columns": []}]}', r"tables\[0\].columns"),
        (one_column(type=3), r"tables\[0\].columns\[0\].type: .*string"),
        (one_column(colour="red"), r"columns\[0\].colour: Extra inputs"),
        (one_column(references="customers"), r"columns\[0\].references"),
        (one_column(references="nowhere.id"), r't\(a\) names table "nowhere"'),
        (one_column(references="t.b"), r't\(a\) names column "t.b"'),
        (one_table(primary_key=["b"]), 'primary key of "t" names column "t.b"'),
        (
            one_table(foreign_keys=[{"columns": ["a"], "table": "t", "target_columns": []}]),
            r"t\(a\) has 1 columns and 0 targets",
        ),
        (one_table(columns=[{"name": "a", "type": "int"}] * 2), 'has column "a" twice'),
        (
            json.dumps({"tables": [DOCS, DOCS]}).encode(),
            '"sales.docs" is described twice',
        ),
    ],
)
def test_a_bad_file_names_its_flaw(data: bytes, words: str):
    with pytest.raises(InvalidInput, match=words):
        read_schema_file(data)


def test_the_wrong_database_is_refused():
    with pytest.raises(NotFound, match='describes "tiny", not "huge"'):
        read_schema_file(json.dumps(PAIRS).encode(), database="huge")


# --- Spider's layout --------------------------------------------------------------------------

LIBRARY = {
    "db_id": "library",
    "table_names_original": ["Author", "bk"],
    "table_names": ["author", "book"],
    "column_names_original": [[-1, "*"], [0, "ID"], [0, "FullName"], [1, "author"], [1, "isbn"]],
    "column_names": [[-1, "*"], [0, "id"], [0, "full name"], [1, "writer"], [1, "isbn"]],
    "column_types": ["text", "number", "text", "number", "text"],
    "primary_keys": [1, [3, 4]],
    "foreign_keys": [[3, 1]],
}
MUSEUM = {**LIBRARY, "db_id": "museum"}


def test_a_database_in_spider_layout():
    data = json.dumps([MUSEUM, LIBRARY]).encode()
    schema = read_schema_file(data, database="library")
    author, book = schema.tables
    assert (schema.name, author.name, author.comment, book.comment) == (
        "library",
        "Author",
        "",
        "book",
    )
    assert author.columns == (Column("ID", "number"), Column("FullName", "text"))
    assert book.columns[0] == Column("author", "number", "writer")
    assert (author.primary_key, book.primary_key) == (("ID",), ("author", "isbn"))
    assert book.foreign_keys == (ForeignKey(("author",), "Author", ("ID",)),)


def test_one_of_several_databases_must_be_chosen():
    data = json.dumps([MUSEUM, LIBRARY]).encode()
    with pytest.raises(InvalidInput, match="2 databases: museum, library"):
        read_schema_file(data)
    with pytest.raises(NotFound, match='no database "zoo"'):
        read_schema_file(data, database="zoo")
    assert read_schema_file(json.dumps(LIBRARY).encode()).name == "library"


def test_a_spider_number_out_of_range_is_refused():
    with pytest.raises(InvalidInput, match='"library" names a table or column by a number'):
        read_schema_file(json.dumps({**LIBRARY, "foreign_keys": [[3, 99]]}).encode())


@pytest.mark.skipif(not SPIDER.exists(), reason="the Spider schemas are not here")
def test_every_spider_database_becomes_nodes_with_their_own_identities():
    data = SPIDER.read_bytes()
    for database in json.loads(data):
        schema = read_schema_file(json.dumps(database).encode(), database=database["db_id"])
        made = schema_nodes(schema)
        fields = len(database["column_names_original"]) - 1
        assert len(made.nodes) == len(database["table_names"]) + fields
        assert len({node.external_id for node in made.nodes}) == len(made.nodes)
