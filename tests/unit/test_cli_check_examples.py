"""contextforge check-examples on a real database: what it prints, marks and exits with."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.ingestion.examples import Example, example_nodes
from service.ingestion.schema_model import Column, Schema, Table, schema_nodes
from tests.command_line import Command
from tests.conftest import MakeTenant, Upsert

OF_ACME = ("--tenant", "acme", "--dataset", "shop")
ORDERS = Table("orders", (Column("id", "integer"), Column("total", "numeric")))
EXAMPLES = (
    Example("How many orders?", "select count(*) from orders"),
    Example("What is due?", "select due from orders"),
)


@pytest.fixture
def shop(make_tenant: MakeTenant, upsert: Upsert) -> Upsert:
    """A tenant with a table and two examples, the second of which is broken."""
    make_tenant("acme")
    upsert("acme", schema_nodes(Schema((ORDERS,))).nodes, dataset_name="shop")
    upsert("acme", example_nodes(EXAMPLES), dataset_name="shop")
    return upsert


def test_the_broken_are_listed_and_the_exit_status_tells(command: Command, shop: Upsert):
    result = command("check-examples", *OF_ACME)
    assert result.code == 1
    assert "What is due?" in result.out
    assert 'No table of it has a column "due".' in " ".join(result.out.split())
    assert "2 examples checked: 1 broken, 1 newly quarantined, 0 released." in result.out


def test_a_repaired_example_is_released(command: Command, shop: Upsert):
    assert command("check-examples", *OF_ACME, "--json").json["quarantined"] == 1
    shop("acme", example_nodes([EXAMPLES[0]]), dataset_name="shop")
    wider = Table("orders", (*ORDERS.columns, Column("due", "date")))
    shop("acme", schema_nodes(Schema((wider,))).nodes, dataset_name="shop")
    result = command("check-examples", *OF_ACME, "--json")
    assert (result.code, result.json["released"], result.json["broken"]) == (0, 1, [])


def test_a_dry_run_tells_and_marks_nothing(command: Command, shop: Upsert):
    for _ in range(2):
        result = command("check-examples", *OF_ACME, "--dry-run", "--json")
        assert (len(result.json["broken"]), result.json["quarantined"]) == (1, 0)


def test_a_database_to_check_against_that_is_not_there_is_one_line(
    command: Command, shop: Upsert, tmp_path: Path
):
    result = command("check-examples", *OF_ACME, "--against", f"sqlite:///{tmp_path}/none.db")
    assert result.code == 1
    assert result.err.startswith("error: There is no SQLite file")


def test_a_dataset_without_a_schema_and_a_strange_dialect_are_refused(
    command: Command, shop: Upsert
):
    result = command("check-examples", "--tenant", "acme", "--dataset", "other")
    assert (result.code, 'no schema in dataset "other"' in result.err) == (1, True)
    assert "is no dialect" in command("check-examples", *OF_ACME, "--dialect", "klingon").err
