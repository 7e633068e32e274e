"""The ingest commands and the demo, on a real database with the real model."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.cli.ingesting import MAX_INPUT_BYTES
from service.db.engine import owner_transaction
from tests.command_line import Command
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase
from tests.web_server import LOOPBACK, Reply, run_web_server

MODEL_DIM = 384
SCHEMA: dict[str, Any] = {
    "name": "shop",
    "tables": [
        {
            "name": "customers",
            "comment": "People who buy.",
            "primary_key": ["id"],
            "columns": [
                {"name": "id", "type": "integer"},
                {"name": "city", "type": "text", "sample_values": ["Oslo"]},
            ],
        },
        {
            "name": "orders",
            "columns": [
                {"name": "customer_id", "type": "integer", "references": "customers.id"},
                {"name": "paid", "type": "boolean"},
            ],
        },
    ],
}
EXAMPLES = [
    {"question": "How many customers are there?", "sql": "select count(*) from customers"},
    {"question": "Which orders are open?", "sql": "select * from orders where not paid"},
]
TO_ACME = ("--tenant", "acme", "--dataset", "shop")
TO_GLOBEX = ("--tenant", "globex", "--dataset", "shop")


@pytest.fixture
def live(make_database: MakeDatabase) -> LiveDatabase:
    """A database of the model's dimension with two tenants."""
    database = make_database(embedding_dim=MODEL_DIM)
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme", "globex"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
    return database


@pytest.fixture
def command(command_on: Callable[..., Command], live: LiveDatabase) -> Command:
    """command(*arguments): run one command on the database of the model's dimension."""
    return command_on(live, embedding_dim=MODEL_DIM)


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A folder with two documents, the first of which leads to the second."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "returns.md").write_text("# Returns\n\nSend it back. See [stores](stores.md).\n")
    (folder / "stores.md").write_text("# Stores\n\nWe are open from nine to five.\n")
    return folder


def write_schema(path: Path, *, tables: Sequence[int] = (0, 1), columns: int = 2) -> str:
    chosen = [SCHEMA["tables"][place] for place in tables]
    cut = [{**table, "columns": table["columns"][:columns]} for table in chosen]
    path.write_text(json.dumps({**SCHEMA, "tables": cut}))
    return str(path)


def write_examples(path: Path, examples: Sequence[object] = EXAMPLES) -> str:
    path.write_text("".join(f"{json.dumps(example)}\n" for example in examples))
    return str(path)


def list_nodes(database: LiveDatabase, tenant: str = "acme") -> list[tuple[str, str]]:
    """Type and external id of a tenant's nodes; all that can be found have an embedding."""
    with owner_transaction(database.admin) as connection:
        rows = connection.exec_driver_sql(
            "select node_type, external_id, searchable_text is null or embedding is not null"
            " from knowledge_nodes where tenant_id = %s order by node_type, external_id",
            (tenant,),
        ).all()
    assert all(embedded for _, _, embedded in rows)
    return [(kind, name) for kind, name, _ in rows]


def count_links(database: LiveDatabase, kind: str) -> int:
    with owner_transaction(database.admin) as connection:
        statement = "select count(*) from node_links where link_type = %s"
        return int(connection.exec_driver_sql(statement, (kind,)).scalar_one())


# --- documents ------------------------------------------------------------------------------


def test_a_folder_becomes_articles_with_sections_and_again_changes_nothing(
    command: Command, live: LiveDatabase, handbook: Path
):
    first = command("ingest", str(handbook), "--tenant", "acme", "--json")
    assert (first.code, first.counts) == (0, (2, 0, 0, 0))
    assert first.json["links"] == 1
    assert count_links(live, "hyperlink") == 1
    kinds = [kind for kind, _ in list_nodes(live)]
    assert kinds == ["article", "article", "section", "section"]
    again = command("ingest", str(handbook), "--tenant", "acme", "--json")
    assert again.counts == (0, 0, 2, 0)
    assert again.json["embedded"] == 0


def test_a_bad_file_is_named_and_the_rest_is_stored(
    command: Command, live: LiveDatabase, handbook: Path
):
    (handbook / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
    (handbook / "empty.md").write_text("")
    result = command("ingest", str(handbook), "--tenant", "acme")
    assert result.code == 1
    assert "2 added" in result.out
    assert "rejected broken.pdf: " in result.err
    assert "rejected empty.md: " in result.err
    assert "Traceback" not in result.err
    assert len(list_nodes(live)) == 4


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    command: Command, live: LiveDatabase, handbook: Path, tmp_path: Path
):
    schema = write_schema(tmp_path / "shop.json")
    examples = write_examples(tmp_path / "examples.jsonl")
    dry = ("--dry-run", "--json")
    assert command("ingest", str(handbook), *TO_ACME, *dry).counts == (2, 0, 0, 0)
    assert command("ingest-schema", schema, *TO_ACME, *dry).counts == (2, 0, 0, 0)
    assert command("ingest-examples", examples, *TO_ACME, *dry).counts == (2, 0, 0, 0)
    assert list_nodes(live) == []


def test_each_command_prunes_only_what_it_provides(
    command: Command, live: LiveDatabase, handbook: Path, tmp_path: Path
):
    schema = write_schema(tmp_path / "shop.json")
    assert command("ingest", str(handbook), *TO_ACME).code == 0
    assert command("ingest-schema", schema, *TO_ACME).code == 0
    assert command("ingest-examples", write_examples(tmp_path / "e.jsonl"), *TO_ACME).code == 0
    before = list_nodes(live)

    (handbook / "stores.md").unlink()
    pruned = command("ingest", str(handbook), *TO_ACME, "--prune", "--json")
    assert (pruned.code, pruned.counts) == (0, (0, 0, 1, 1))
    write_schema(tmp_path / "shop.json", tables=[0])
    pruned = command("ingest-schema", schema, *TO_ACME, "--prune", "--json")
    assert (pruned.code, pruned.counts) == (0, (0, 0, 1, 1))

    gone = {name for _, name in set(before) - set(list_nodes(live))}
    assert gone == {
        *("stores.md", "stores.md#stores.1"),
        *("table:orders", "field:orders.customer_id", "field:orders.paid"),
    }
    for file in handbook.iterdir():
        file.unlink()
    assert command("ingest", str(handbook), *TO_ACME, "--prune", "--json").counts == (0, 0, 0, 1)
    assert {kind for kind, _ in list_nodes(live)} == {"table", "field", "qa_example"}


def test_two_tenants_with_the_same_dataset_never_mix(
    command: Command, live: LiveDatabase, handbook: Path, tmp_path: Path
):
    schema = write_schema(tmp_path / "shop.json")
    examples = write_examples(tmp_path / "examples.jsonl")
    for where in (TO_ACME, TO_GLOBEX):
        for arguments in (("ingest", str(handbook)), ("ingest-schema", schema)):
            assert command(*arguments, *where, "--json").counts == (2, 0, 0, 0)
        assert command("ingest-examples", examples, *where, "--json").counts == (2, 0, 0, 0)
    untouched = list_nodes(live, "globex")
    assert untouched == list_nodes(live, "acme")

    write_schema(tmp_path / "shop.json", tables=[0])
    (handbook / "stores.md").unlink()
    assert command("ingest", str(handbook), *TO_ACME, "--prune").code == 0
    assert command("ingest-schema", schema, *TO_ACME, "--prune").code == 0
    assert list_nodes(live, "globex") == untouched
    assert len(list_nodes(live, "acme")) == len(untouched) - 5


def test_a_tenant_that_does_not_exist_is_one_line(command: Command, tmp_path: Path):
    path = write_examples(tmp_path / "examples.jsonl")
    result = command("ingest-examples", path, "--tenant", "initech", "--dataset", "shop")
    assert result.code == 1
    assert result.err.startswith("error: ")
    assert "initech" in result.err
    assert result.err.count("\n") == 1


def test_a_url_is_rejected_unless_allowed_and_this_machine_even_then(
    command: Command, live: LiveDatabase, handbook: Path, monkeypatch: pytest.MonkeyPatch
):
    with run_web_server({"/": Reply()}) as server:
        url = f"http://{LOOPBACK}:{server.port}/"
        off = command("ingest", url, str(handbook), *TO_ACME)
        monkeypatch.setenv("CONTEXTFORGE_ALLOW_URLS", "on")
        other_port = command("ingest", url, str(handbook), *TO_ACME)
        monkeypatch.setenv("CONTEXTFORGE_URL_PORTS", f"443, {server.port}")
        inside = command("ingest", url, str(handbook), *TO_ACME)
        assert server.requests == []
    for result, reason in (
        (off, "Set CONTEXTFORGE_ALLOW_URLS=on"),
        (other_port, f"port {server.port}"),
        (inside, "127.0.0.1, a loopback address"),
    ):
        assert result.code == 1
        assert "1 rejected" in result.out
        assert reason in result.err
    assert "2 added" in off.out
    assert len(list_nodes(live)) == 4


def test_another_model_of_the_same_dimension_is_let_in_only_when_told_so(
    command: Command, live: LiveDatabase, handbook: Path, tmp_path: Path
):
    with owner_transaction(live.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.tenant_profiles"
            " set embedder_version = 'other@1/384', embedding_dim = 384"
        )
    schema = write_schema(tmp_path / "shop.json")
    examples = write_examples(tmp_path / "examples.jsonl")
    for arguments in (
        ("ingest", str(handbook)),
        ("ingest-schema", schema),
        ("ingest-examples", examples),
    ):
        refused = command(*arguments, *TO_ACME)
        assert refused.code == 1
        assert "--allow-mixed" in refused.err
        assert command(*arguments, *TO_ACME, "--allow-mixed", "--json").counts == (2, 0, 0, 0)
    assert list_nodes(live, "globex") == []


@pytest.mark.parametrize("given", ["file", "stdin"])
@pytest.mark.parametrize(
    "arguments", [("ingest-schema",), ("ingest-examples", "--format", "jsonl")]
)
def test_a_schema_or_examples_larger_than_the_limit_are_refused(
    *,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    given: str,
):
    with (tmp_path / "large.json").open("wb") as large:
        large.truncate(MAX_INPUT_BYTES + 1)
    with (tmp_path / "large.json").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        name = "large.json" if given == "file" else "-"
        result = command(*arguments, name, *TO_ACME)
    assert result.code == 1
    assert result.err.startswith(f"error: {name}: larger than 100 MB.")


# --- schemas --------------------------------------------------------------------------------


def test_a_schema_file_becomes_tables_fields_and_links(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    path = write_schema(tmp_path / "shop.json")
    first = command("ingest-schema", path, *TO_ACME, "--json")
    assert (first.code, first.counts) == (0, (2, 0, 0, 0))
    assert (first.json["nodes"], first.json["embedded"], first.json["links"]) == (6, 6, 2)
    assert count_links(live, "foreign_key") == 2
    again = command("ingest-schema", path, *TO_ACME, "--json")
    assert again.counts == (0, 0, 2, 0)
    assert (again.json["embedded"], again.json["links"]) == (0, 0)


def test_a_field_that_vanished_goes_with_its_tables_next_version(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    path = write_schema(tmp_path / "shop.json")
    assert command("ingest-schema", path, *TO_ACME).code == 0
    write_schema(tmp_path / "shop.json", columns=1)
    assert command("ingest-schema", path, *TO_ACME, "--json").counts == (0, 2, 0, 0)
    fields = [name for kind, name in list_nodes(live) if kind == "field"]
    assert fields == ["field:customers.id", "field:orders.customer_id"]


def test_a_live_database_is_read_and_masked_columns_are_not(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.executescript(
            "create table people (id integer primary key, email text, nick text, town text);"
            "insert into people values (1, 'ada@example.org', 'countess', 'London');"
        )
    shop.close()
    result = command("ingest-schema", "sqlite:///shop.db", *TO_ACME, "--mask", "^nick$", "--json")
    assert (result.code, result.counts) == (0, (1, 0, 0, 0))
    with owner_transaction(live.admin) as connection:
        text = connection.exec_driver_sql(
            "select string_agg(content || metadata::text, ' ') from knowledge_nodes"
        ).scalar_one()
    assert "London" in text
    assert "countess" not in text
    assert "ada@" not in text
    assert command("ingest-schema", "sqlite:///shop.db", *TO_ACME, "--database", "x").code == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "shop.json: The schema is not JSON"),
        ('{"tables": [{"name": "a"}]}', "shop.json: The schema is wrong at tables[0].columns"),
        ('{"tables": []}', "The source has no tables."),
        (None, "shop.json: cannot be read"),
    ],
)
def test_a_bad_schema_is_named_and_prunes_nothing(
    command: Command, live: LiveDatabase, tmp_path: Path, content: str | None, complaint: str
):
    path = write_schema(tmp_path / "shop.json")
    assert command("ingest-schema", path, *TO_ACME).code == 0
    before = list_nodes(live)
    Path(path).unlink()
    if content is not None:
        Path(path).write_text(content)
    result = command("ingest-schema", "shop.json", *TO_ACME, "--prune")
    assert result.code == 1
    assert result.err.startswith(f"error: {complaint}")
    assert list_nodes(live) == before


# --- examples -------------------------------------------------------------------------------


def test_examples_are_the_same_from_every_format(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    lines = write_examples(tmp_path / "examples.jsonl")
    assert command("ingest-examples", lines, *TO_ACME, "--json").counts == (2, 0, 0, 0)
    (tmp_path / "examples.json").write_text(json.dumps(EXAMPLES))
    rows = [f'"{each["question"]}","{each["sql"]}"\n' for each in EXAMPLES]
    (tmp_path / "rows.txt").write_text("question,sql\n" + "".join(rows))
    for arguments in (("examples.json",), ("rows.txt", "--format", "csv")):
        again = command("ingest-examples", *arguments, *TO_ACME, "--json")
        assert again.counts == (0, 0, 2, 0)
        assert again.json["embedded"] == 0
    assert [kind for kind, _ in list_nodes(live)] == ["qa_example", "qa_example"]


def test_a_bad_row_is_named_and_the_rest_is_stored(
    command: Command, live: LiveDatabase, tmp_path: Path
):
    path = write_examples(tmp_path / "examples.jsonl", [EXAMPLES[0], {"sql": "select 1"}])
    result = command("ingest-examples", path, *TO_ACME, "--json")
    assert (result.code, result.counts) == (1, (1, 0, 0, 0))
    [rejected] = result.json["rejected"]
    assert rejected["source"].endswith("examples.jsonl, row 2")
    assert rejected["reason"] == "has no question."
    assert len(list_nodes(live)) == 1


def test_examples_of_an_unknown_format_are_refused(command: Command, tmp_path: Path):
    path = write_examples(tmp_path / "examples.txt")
    result = command("ingest-examples", path, *TO_ACME)
    assert result.code == 1
    assert "--format" in result.err
    (tmp_path / "bad.json").write_text("{")
    result = command("ingest-examples", "bad.json", *TO_ACME)
    assert result.code == 1
    assert result.err.startswith("error: bad.json: The examples are not JSON")


# --- the demo -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_demo_is_loaded_and_again_embeds_nothing(command: Command, live: LiveDatabase):
    first = command("demo", "--json")
    assert first.code == 0
    docs, sales = first.json["docs"], first.json["sales_db"]
    assert docs["added"] >= 15
    assert docs["links"] >= 10
    assert sales["added"] >= 15 + 40
    assert docs["rejected"] == sales["rejected"] == []
    nodes = list_nodes(live, "demo")
    assert {kind for kind, _ in nodes} == {"article", "section", "table", "field", "qa_example"}
    assert {("article", "README.md"), ("article", "docs/reference/sql.md")} <= set(nodes)
    assert list_nodes(live, "acme") == []

    again = command("demo")
    assert again.code == 0
    assert "; 0 embedded" in again.out
    assert list_nodes(live, "demo") == nodes
