"""Text-to-SQL sets: are the fields a question needs found, and every table of its joins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from service.errors import InvalidInput
from service.evaluation.beir import JudgedSet, Question, read_objects
from service.evaluation.gold_sql import find_needed, find_tables
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import Schema, prefix_tables, schema_nodes
from service.retrieval.joins import JoinGraph
from service.specs import JoinSpec

SCHEMAS = "tables.json"
QUESTIONS = "dev.json"
CUTS = (10, 20)
TABLE_CUTS = (5, *CUTS)

CompleteJoins = Callable[[Sequence[str]], Sequence[str]]
"""Tables found, in order, in; the same with those that join them out."""


@dataclass(frozen=True, slots=True)
class SqlSet:
    """A judged set of fields: the table of each document, and the tables each question needs.

    A document is known by its dataset too, where questions are asked of one dataset each.
    """

    judged: JudgedSet
    tables: Mapping[tuple[str | None, str], str]
    needed: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class SchemaSet:
    """A folder of schemas with questions: what is loaded, and how it is judged."""

    sql_set: SqlSet
    schemas: tuple[Schema, ...]


def is_schema_folder(folder: Path) -> bool:
    """Whether a folder has schemas and questions with their SQL, as Spider has them."""
    return (folder / SCHEMAS).is_file() and (folder / QUESTIONS).is_file()


def judge_tables(
    sql_set: SqlSet,
    rankings: Mapping[str, Sequence[str]],
    *,
    complete_joins: CompleteJoins | None = None,
) -> dict[str, dict[str, float]]:
    """For each cut and question, 1 if every table it needs is among those of the found fields.

    full_tables counts the tables of the found fields alone, join_complete those on the foreign-key
    paths between them too, where the keys are known.
    """
    values: dict[str, dict[str, float]] = {}
    for question in sql_set.judged.questions:
        needed = sql_set.needed[question.query_id]
        for cut in TABLE_CUTS:
            found = list_tables(sql_set, question, rankings[question.query_id][:cut])
            measured: dict[str, Sequence[str]] = {f"full_tables@{cut}": found}
            if complete_joins is not None:
                measured[f"join_complete@{cut}"] = complete_joins(found)
            for name, tables in measured.items():
                values.setdefault(name, {})[question.query_id] = float(needed <= set(tables))
    return values


def list_tables(sql_set: SqlSet, question: Question, documents: Iterable[str]) -> tuple[str, ...]:
    """The tables of found fields, each once, in the order of the fields."""
    places = ((question.dataset, document) for document in documents)
    return tuple(dict.fromkeys(sql_set.tables[each] for each in places if each in sql_set.tables))


def make_completer(schemas: Iterable[Schema]) -> CompleteJoins:
    """Join completion over the foreign keys of these databases."""
    tables: list[str] = []
    joins: list[JoinSpec] = []
    for schema in schemas:
        for table in schema.tables:
            own = _table_key(schema.name, table.qualified_name)
            tables.append(own)
            joins += [
                JoinSpec(own, key.columns, _table_key(schema.name, key.table), key.target_columns)
                for key in table.foreign_keys
            ]
    return JoinGraph(tables, joins).complete


def pool_databases(sql_set: SqlSet, schemas: Iterable[Schema]) -> SqlSet:
    """The same questions, asked of all these databases in one dataset: see `prefix_tables`."""
    judged = sql_set.judged
    databases = {question.query_id: question.database or "" for question in judged.questions}
    judgements = {
        query_id: {
            document.replace("field:", f"field:{databases[query_id]}.", 1): relevance
            for document, relevance in relevant.items()
        }
        for query_id, relevant in judged.judgements.items()
    }
    questions = tuple(replace(question, dataset=None) for question in judged.questions)
    tables: dict[tuple[str | None, str], str] = {
        (None, identity): table
        for schema in schemas
        for (table, _), identity in _field_ids(prefix_tables(schema, schema.name or "")).items()
    }
    pooled = replace(judged, questions=questions, judgements=judgements)
    return SqlSet(pooled, tables, sql_set.needed)


def find_field_set(judged: JudgedSet) -> SqlSet | None:
    """A BEIR folder as a set of fields; None unless its documents name a table and a column."""
    tables: dict[tuple[str | None, str], str] = {}
    for _, values in read_objects(judged.corpus):
        table, column = values.get("table"), values.get("column")
        if not isinstance(table, str) or not isinstance(column, str):
            return None
        tables[None, str(values.get("_id"))] = _table_key(values.get("db_id"), table)
    needed = {
        question.query_id: _needed_tables(question)
        or frozenset(
            tables[None, document]
            for document in judged.judgements[question.query_id]
            if (None, document) in tables
        )
        for question in judged.questions
    }
    return SqlSet(judged, tables, needed)


def read_schema_set(folder: Path) -> SchemaSet:
    """Read schemas and questions; those whose SQL names no known field are left out."""
    data = (folder / SCHEMAS).read_bytes()
    asked = list(_read_asked(folder / QUESTIONS))
    names = list(dict.fromkeys(question.dataset or "" for question in asked))
    schemas = {name: read_schema_file(data, database=name) for name in names}
    fields = {name: _field_ids(schema) for name, schema in schemas.items()}
    columns = {
        name: {table.name: [column.name for column in table.columns] for table in schema.tables}
        for name, schema in schemas.items()
    }
    judgements: dict[str, dict[str, int]] = {}
    needed: dict[str, frozenset[str]] = {}
    for question in asked:
        name = question.dataset or ""
        read = find_needed(question.sql or "", columns[name])
        if read is not None and read.columns:
            judgements[question.query_id] = {fields[name][each]: 1 for each in read.columns}
            needed[question.query_id] = frozenset(_table_key(name, each) for each in read.tables)
    kept = tuple(question for question in asked if question.query_id in judgements)
    if not kept:
        raise InvalidInput(f"{folder}: no question has SQL that names known columns.")
    tables: dict[tuple[str | None, str], str] = {
        (name, identity): _table_key(name, table)
        for name, known in fields.items()
        for (table, _), identity in known.items()
    }
    judged = JudgedSet(folder, kept, judgements, len(asked))
    return SchemaSet(SqlSet(judged, tables, needed), tuple(schemas.values()))


def _needed_tables(question: Question) -> frozenset[str]:
    tables = find_tables(question.sql) if question.sql else frozenset()
    return frozenset(_table_key(question.database, table) for table in tables)


def _field_ids(schema: Schema) -> dict[tuple[str, str], str]:
    """The external id of each field's node by table and column in lower case."""
    return {
        (str(node.parent).removeprefix("table:").lower(), node.title.lower()): node.external_id
        for node in schema_nodes(schema).nodes
        if node.node_type == "field"
    }


def _read_asked(path: Path) -> Iterator[Question]:
    try:
        rows = json.loads(path.read_bytes())
    except ValueError as exc:
        raise InvalidInput(f"{path}: not JSON.") from exc
    if not isinstance(rows, list):
        raise InvalidInput(f"{path}: not a list of questions.")
    for place, row in enumerate(rows):
        if not isinstance(row, dict) or not all(
            isinstance(row.get(key), str) for key in ("db_id", "question", "query")
        ):
            raise InvalidInput(f"{path}, question {place + 1}: needs db_id, question and query.")
        name = row["db_id"]
        yield Question(
            str(place), row["question"], place, sql=row["query"], database=name, dataset=name
        )


def _table_key(database: object, table: str) -> str:
    return f"{database}.{table}".lower() if isinstance(database, str) else table.lower()
