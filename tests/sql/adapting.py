"""What the tests of the adapter share: two tenants, each with a dataset sales_db of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, event

from service.db.engine import owner_transaction
from service.demo import demo_files
from service.ingestion.convert import NodeGroup, group_examples, group_schema
from service.ingestion.examples import Example, read_examples
from service.ingestion.ingest import Ingestion
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import Column, Schema, Table
from service.settings import Settings
from tests.live_database import SMALL_DIM, LiveDatabase
from tests.tiny_embedder import TinyEmbedder

SETTINGS = Settings(embedding_dim=SMALL_DIM)
# Words of the other tenant's questions and columns: it would win if it were searched too.
GLOBEX_SCHEMA = Schema(
    (
        Table(
            "customer_email_address",
            (Column("customer_email", "text", "customer email address"),),
            row_count=99,
        ),
    )
)
GLOBEX_EXAMPLES = (
    Example(
        "show total revenue",
        "select count(*) from customer_email_address",
        "Globex alone.",
        verified=True,
    ),
)


def sales_groups() -> Iterator[NodeGroup]:
    """The demo's schema and examples."""
    files = demo_files()
    rows = read_examples(files.examples, format="jsonl")
    examples = [row for row in rows if isinstance(row, Example)]
    yield from group_schema(read_schema_file(files.schema))
    yield from group_examples("sales_examples.jsonl", examples)


def globex_groups() -> Iterator[NodeGroup]:
    yield from group_schema(GLOBEX_SCHEMA)
    yield from group_examples("globex.jsonl", GLOBEX_EXAMPLES)


def store(
    database: LiveDatabase,
    tenant: str,
    groups: Iterator[NodeGroup],
    *,
    dataset: str = "sales_db",
) -> None:
    ingestion = Ingestion(database.engine, tenant, TinyEmbedder(), dataset_name=dataset)
    assert ingestion.run(groups).rejected == ()


def store_both_tenants(database: LiveDatabase) -> None:
    """Make acme_corp with the demo and globex with its own, both as dataset sales_db."""
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme_corp", "globex"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
    store(database, "acme_corp", sales_groups())
    store(database, "globex", globex_groups())


@contextmanager
def counting(engine: Engine) -> Iterator[list[str]]:
    """The statements an engine sends meanwhile."""
    sent: list[str] = []

    def note(*arguments: object) -> None:
        sent.append(str(arguments[2]))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
