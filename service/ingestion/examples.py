"""Question, SQL and explanation from JSON, JSON Lines or CSV, as nodes for few-shot (pure)."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic_core import from_json

from service.errors import InvalidInput
from service.types import Json, NodeDraft

ExampleFormat = Literal["json", "jsonl", "csv"]

_QUESTION_KEYS = ("question", "query")
_SQL_KEYS = ("sql", "query_sql")
_EXPLANATION_KEYS = ("explanation", "description")
_YES = {"true", "yes", "y", "1"}
_NO = {"false", "no", "n", "0", ""}
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the SQL that answers it."""

    question: str
    sql: str
    explanation: str = ""
    verified: bool = False
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no example: its line (in JSON its place in the list) and why."""

    row: int
    reason: str


# `format` is the word of the command line, and what the builtin does is not needed here.
def read_examples(data: bytes, *, format: ExampleFormat) -> list[Example | BadRow]:  # noqa: A002
    """Read examples in order, each bad row as a BadRow in its place; an unreadable file raises."""
    rows = {"json": _json_rows, "jsonl": _jsonl_rows, "csv": _csv_rows}[format](
        data.removeprefix(codecs.BOM_UTF8)
    )
    seen: dict[str, int] = {}
    read: list[Example | BadRow] = []
    for number, row in rows:
        example = row if isinstance(row, BadRow) else _read_row(number, row)
        if isinstance(example, Example):
            first = seen.setdefault(normalise_question(example.question), number)
            if first != number:
                example = BadRow(number, f"asks the question of row {first} again.")
        read.append(example)
    return read


def example_nodes(examples: Sequence[Example]) -> tuple[NodeDraft, ...]:
    """The nodes of examples; asked in the same words, a question keeps its identity."""
    return tuple(_example_node(example) for example in examples)


def normalise_question(question: str) -> str:
    """The question without what does not change it: case, spacing, closing punctuation."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return _SPACE.sub(" ", folded).strip().rstrip(" .?!")


def _example_node(example: Example) -> NodeDraft:
    digest = hashlib.sha256(normalise_question(example.question).encode()).hexdigest()
    metadata: dict[str, Json] = {
        "question": example.question,
        "sql": example.sql,
        "explanation": example.explanation,
        "verified": example.verified,
    }
    if example.tables:
        metadata["tables"] = list(example.tables)
    return NodeDraft(
        external_id=f"example:{digest[:32]}",
        node_type="qa_example",
        title=example.question,
        summary=example.explanation,
        content=example.sql,
        metadata=metadata,
    )


# --- rows of each format ----------------------------------------------------------------------

_Rows = Iterator[tuple[int, object]]


def _json_rows(data: bytes) -> _Rows:
    try:
        loaded: object = from_json(data, allow_inf_nan=False)
    except ValueError as exc:
        raise InvalidInput(f"The examples are not JSON: {exc}.") from exc
    if isinstance(loaded, dict):
        loaded = loaded.get("examples")
    if not isinstance(loaded, list):
        raise InvalidInput(
            "The examples are not a list.",
            hint='Give a JSON list of objects, or an object whose "examples" is one.',
        )
    yield from enumerate(loaded, start=1)


def _jsonl_rows(data: bytes) -> _Rows:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, from_json(line, allow_inf_nan=False)
            except ValueError as exc:
                column = str(exc).rpartition(" at line 1 ")
                yield number, BadRow(number, f"is not JSON: {column[0]} at {column[2]}.")


def _csv_rows(data: bytes) -> _Rows:
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise InvalidInput(f"The examples are not UTF-8 on line {line}.") from exc
    first_line = text.partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(",;\t", key=first_line.count), strict=True
    )
    header = _csv_header(reader)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            yield number, BadRow(number, f"is not CSV: {exc}.")
            continue
        if cells:
            yield number, _csv_row(number, header, cells=cells)


def _csv_header(reader: Iterator[list[str]]) -> list[str]:
    try:
        header = [cell.strip().casefold() for cell in next(reader, [])]
    except csv.Error as exc:
        raise InvalidInput(f"The header of the examples is not CSV: {exc}.") from exc
    if not (set(header) & set(_QUESTION_KEYS) and set(header) & {*_SQL_KEYS, "query"}):
        raise InvalidInput(
            "The examples have no header with a question and a sql column.",
            hint="The first line names the columns: question,sql,explanation,verified,tables",
        )
    return header


def _csv_row(number: int, header: list[str], *, cells: list[str]) -> object:
    if len(cells) != len(header):
        return BadRow(number, f"has {len(cells)} cells where the header has {len(header)}.")
    return dict(zip(header, cells, strict=True))


# --- one row ----------------------------------------------------------------------------------


def _read_row(number: int, row: object) -> Example | BadRow:
    if not isinstance(row, Mapping):
        return BadRow(number, "is not an object.")
    # Where both are given, "query" is the SQL of the question: some exports name it so.
    sql_keys = (*_SQL_KEYS, "query") if row.get("question") else _SQL_KEYS
    try:
        return Example(
            question=_find_text(row, _QUESTION_KEYS, required=True),
            sql=_find_text(row, sql_keys, required=True),
            explanation=_find_text(row, _EXPLANATION_KEYS, required=False),
            verified=_read_verified(row.get("verified")),
            tables=_read_tables(row.get("tables")),
        )
    except _Unreadable as exc:
        return BadRow(number, str(exc))


class _Unreadable(Exception):
    """Why a row is no example."""


def _find_text(row: Mapping[str, object], keys: Sequence[str], *, required: bool) -> str:
    for key in keys:
        value = row.get(key)
        if isinstance(value, str) and value.strip():
            if "\x00" in value:
                raise _Unreadable(f"has a NUL byte in its {key}.")
            return value.strip()
    wrong = next((key for key in keys if not isinstance(row.get(key), str | None)), None)
    if wrong:
        raise _Unreadable(f"has a {wrong} that is no text.")
    if required:
        raise _Unreadable(f"has no {keys[0]}.")
    return ""


def _read_verified(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = "" if value is None else str(value).strip().casefold()
    if word not in _YES | _NO:
        raise _Unreadable(f'has verified "{word}", which is neither true nor false.')
    return word in _YES


def _read_tables(value: object) -> tuple[str, ...]:
    """Tables as a list, or in one text between commas, semicolons or spaces."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(name for name in re.split(r"[,;\s]+", value) if name)
    if isinstance(value, Sequence) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise _Unreadable("has tables that are no list of names.")
