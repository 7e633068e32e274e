"""python -m benchmarks.text_to_sql: are the columns and tables found that a question's SQL needs.

The set is Spider's development questions on its schemas, each column and table that the gold SQL
names a judgement. Asked twice: of all databases in one dataset, and of each database alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.stand import Stand, create_tenant, open_stand
from service.embedding import Embedder, load_embedder
from service.evaluation.evaluate import EmbeddedQuestions, Evaluation, embed_questions, evaluate
from service.evaluation.metrics import average
from service.evaluation.options import Mode, Retrieval
from service.evaluation.searchers import Collection, DocumentNames, NodeSearcher
from service.evaluation.text_to_sql import (
    CUTS,
    SCHEMAS,
    TABLE_CUTS,
    CompleteJoins,
    SqlSet,
    judge_tables,
    list_tables,
    make_completer,
    pool_databases,
    read_schema_set,
)
from service.ingestion.convert import group_schema
from service.ingestion.ingest import Ingestion
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import Schema, prefix_tables
from service.settings import load_settings

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "spider"
MODES: tuple[Mode, ...] = ("bm25", "vector", "hybrid")
POOLED = "all"

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Task:
    """Questions on stored schemas: one dataset of all, or the dataset each question names."""

    tenant: str
    sql_set: SqlSet
    complete_joins: CompleteJoins
    dataset_name: str | None = None


def main(
    *,
    data: Annotated[Path, typer.Option(help="Folder of the Spider set.")] = DATA,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path(
        "build/text_to_sql.json"
    ),
) -> None:
    """Measure field and table recall of each leg and of both, with and without join completion."""
    if not (data / SCHEMAS).is_file():
        console.print(f"No Spider set at {data}: give --data, or nothing can be measured.")
        raise typer.Exit(1)
    embedder = load_embedder()
    with open_stand() as stand:
        results = measure_text_to_sql(stand, data, embedder=embedder)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def measure_text_to_sql(stand: Stand, data: Path, *, embedder: Embedder) -> dict[str, object]:
    """Load all schemas, ask all questions."""
    read = read_schema_set(data)
    schemas = read_all_schemas(data)
    complete_joins = make_completer(schemas)
    for tenant in ("pooled", "apart"):
        create_tenant(stand, tenant)
    console.print(f"loading {len(schemas)} databases")
    for schema in schemas:
        name = schema.name or ""
        _store(stand, "pooled", prefix_tables(schema, name), dataset=POOLED, embedder=embedder)
    for schema in read.schemas:
        _store(stand, "apart", schema, dataset=schema.name or "", embedder=embedder)
    embedded = embed_questions(read.sql_set.judged.questions, embedder)
    pooled = Task("pooled", pool_databases(read.sql_set, schemas), complete_joins, POOLED)
    apart = Task("apart", read.sql_set, complete_joins)
    return {
        "questions": len(embedded.questions),
        "databases": len(schemas),
        "databases_asked": len(read.schemas),
        "one_dataset": _measure(stand, pooled, embedded=embedded),
        "each_database": _measure(stand, apart, embedded=embedded),
    }


def read_all_schemas(data: Path) -> list[Schema]:
    """The schemas of all databases, asked or not."""
    content = (data / SCHEMAS).read_bytes()
    names = [each["db_id"] for each in json.loads(content)]
    return [read_schema_file(content, database=name) for name in names]


def _store(stand: Stand, tenant: str, schema: Schema, *, dataset: str, embedder: Embedder) -> None:
    ingestion = Ingestion(stand.engine, tenant, embedder, dataset_name=dataset)
    report = ingestion.run(group_schema(schema))
    assert not report.rejected, report.rejected


def _measure(stand: Stand, task: Task, *, embedded: EmbeddedQuestions) -> dict[str, object]:
    judged = task.sql_set.judged
    asked = EmbeddedQuestions(judged.questions, embedded.vectors)
    place = Collection(stand.engine, task.tenant, task.dataset_name, node_types=("field",))
    settings = load_settings()
    searchers = [
        (retrieval, NodeSearcher(place, retrieval, DocumentNames(task.tenant)))
        for retrieval in (Retrieval(mode, settings) for mode in MODES)
    ]
    found = evaluate(judged, asked, searchers=searchers)
    return {each.retrieval.mode: _describe(task, each) for each in found}


def _describe(task: Task, evaluation: Evaluation) -> dict[str, float]:
    joins = judge_tables(task.sql_set, evaluation.rankings, complete_joins=task.complete_joins)
    means = {f"recall@{cut}": evaluation.means[f"recall@{cut}"] for cut in CUTS}
    means |= {name: average(values) for name, values in joins.items()}
    means |= _count_tables(task, evaluation.rankings)
    return {name: round(value, 4) for name, value in means.items()}


def _count_tables(task: Task, rankings: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How many tables a question gets on average, before and after completion."""
    counts: dict[str, float] = {}
    for cut in TABLE_CUTS:
        found = [
            list_tables(task.sql_set, question, rankings[question.query_id][:cut])
            for question in task.sql_set.judged.questions
        ]
        counts[f"tables@{cut}"] = _mean_length(found)
        counts[f"joined_tables@{cut}"] = _mean_length(task.complete_joins(each) for each in found)
    return counts


def _mean_length(lists: Iterable[Sequence[str]]) -> float:
    return mean(len(each) for each in lists)


if __name__ == "__main__":
    typer.run(main)
