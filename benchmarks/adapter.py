"""python -m benchmarks.adapter: what get_similar_fields costs beside the SQL function it calls.

One dataset of 5,000 fields. The bare call is hybrid_search_nodes alone, in an open transaction,
with the same arguments; the adapter opens its transaction, sets the tenant, checks the embedder,
reads the nodes and builds the specs. Questions are embedded before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Connection

from benchmarks.stand import Stand, create_tenant, open_stand, time_calls, vacuum
from service.adapter import KnowledgeVerseAdapter
from service.db.engine import tenant_transaction
from service.db.maintenance import merge_segments
from service.db.search import hybrid_search_nodes
from service.embedding import Embedder, load_embedder
from service.ingestion.convert import group_schema
from service.ingestion.ingest import Ingestion
from service.ingestion.schema_model import Column, Schema, Table

TENANT = "bench"
DATASET = "warehouse"
FIELDS_A_TABLE = 20
_THINGS = (
    *("customer", "order", "invoice", "product", "supplier", "shipment", "employee", "store"),
    *("payment", "refund", "campaign", "contract", "vehicle", "ticket", "account", "visit"),
)
_FACTS = (
    *("email address", "created date", "total amount", "status", "region", "discount rate"),
    *("phone number", "first name", "last name", "unit price", "quantity", "currency"),
    *("delivery date", "note", "owner", "category", "weight", "tax rate", "country", "score"),
)


def main(
    *,
    fields: Annotated[int, typer.Option(help="How many fields the dataset has.")] = 5000,
    rounds: Annotated[int, typer.Option(help="How often each question is asked.")] = 5,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/adapter.json"),
) -> None:
    """Time both calls in turn, so that a busy moment falls on both."""
    embedder = load_embedder()
    with open_stand() as stand:
        results = measure_adapter(stand, fields=fields, rounds=rounds, embedder=embedder)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def measure_adapter(
    stand: Stand, *, fields: int, rounds: int, embedder: Embedder
) -> dict[str, object]:
    """Load a made-up warehouse and ask for its fields both ways."""
    create_tenant(stand, TENANT)
    ingestion = Ingestion(stand.engine, TENANT, embedder, dataset_name=DATASET)
    ingestion.run(group_schema(make_warehouse(fields)))
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        merge_segments(connection, TENANT, everything=True)
    vacuum(stand)
    questions = [f"{fact} of the {thing}" for thing in _THINGS for fact in _FACTS[::4]]
    embedder.embed_queries(questions)  # from here on they are remembered
    adapter = KnowledgeVerseAdapter(stand.engine, embedder=embedder)
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        bare = [_bare_call(connection, embedder, question) for question in questions]
        whole = [_adapter_call(adapter, question) for question in questions]
        return _compare(bare * rounds, whole * rounds, fields=fields)


def make_warehouse(fields: int) -> Schema:
    """So many fields in tables of twenty, all of them different."""
    tables = [
        Table(
            f"{_THINGS[number % len(_THINGS)]}_{number}",
            tuple(
                Column(
                    fact.replace(" ", "_"), "text", f"{fact} of {_THINGS[number % len(_THINGS)]}"
                )
                for fact in _FACTS[:FIELDS_A_TABLE]
            ),
        )
        for number in range(fields // FIELDS_A_TABLE)
    ]
    return Schema(tuple(tables))


Call = Callable[[], object]


def _bare_call(connection: Connection, embedder: Embedder, question: str) -> Call:
    vector = embedder.embed_query(question)
    return lambda: hybrid_search_nodes(
        connection,
        [TENANT],
        query_text=question,
        query_embedding=vector,
        node_types=["field"],
        top_k=10,
        dataset_name=DATASET,
    )


def _adapter_call(adapter: KnowledgeVerseAdapter, question: str) -> Call:
    return lambda: adapter.get_similar_fields(
        question, tenant_id=TENANT, dataset_name=DATASET, top_k=10
    )


def _compare(bare: Sequence[Call], whole: Sequence[Call], *, fields: int) -> dict[str, object]:
    size = len(bare) // 10
    turns = [
        (time_calls(bare[start : start + size]), time_calls(whole[start : start + size]))
        for start in range(0, len(bare), size)
    ]
    middle = sorted(turns, key=lambda turn: turn[1].p50 / turn[0].p50)[len(turns) // 2]
    return {
        "fields": fields,
        "calls": len(bare),
        "bare_ms": asdict(middle[0]),
        "adapter_ms": asdict(middle[1]),
        "adapter_over_bare": round(middle[1].p50 / middle[0].p50, 2),
    }


if __name__ == "__main__":
    typer.run(main)
