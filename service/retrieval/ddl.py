"""Tables as text for a prompt: compact DDL with comments and samples, or JSON (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from sqlalchemy.dialects.postgresql.base import PGDialect

from service.specs import FieldSpec, JoinSpec, SampleValue, TableSpec

# Double quotes where a name needs them; SQLite and standard SQL read them alike.
_PREPARER = PGDialect().identifier_preparer  # type: ignore[no-untyped-call]


def render_ddl(tables: Sequence[TableSpec]) -> str:
    """`create table` statements; descriptions, row counts and samples stand in comments."""
    return "\n".join(_render_table(table) for table in tables)


def render_json(tables: Sequence[TableSpec]) -> str:
    """The same facts as one JSON object, without what is empty."""
    listed = [
        _without_empty(
            {
                "table": table.table,
                "description": _one_line(table.description),
                "rows": table.row_count,
                "primary_key": list(table.primary_key),
                "fields": [_field_facts(field) for field in table.fields],
                "joins": [join.condition for join in table.joins],
            }
        )
        for table in tables
    ]
    return json.dumps({"tables": listed}, ensure_ascii=False, separators=(",", ":"))


def _render_table(table: TableSpec) -> str:
    lines = [*_column_lines(table), *_key_lines(table)]
    body = [
        f"  {code}{',' if place < len(lines) else ''}{f' -- {note}' if note else ''}"
        for place, (code, note) in enumerate(lines, start=1)
    ]
    note = _table_note(table)
    head = f"create table {_name(table.table)} ({f' -- {note}' if note else ''}"
    return "\n".join([head, *body, ");"])


def _column_lines(table: TableSpec) -> Iterator[tuple[str, str]]:
    """Each column as code and comment."""
    inline = _inline_joins(table)
    for field in table.fields:
        words = [_PREPARER.quote(field.field_name), _one_line(field.field_type)]
        if table.primary_key == (field.field_name,):
            words.append("primary key")
        elif not field.nullable:
            words.append("not null")
        if field.field_name in inline:
            words.append(_reference(inline[field.field_name]))
        yield " ".join(words), _field_note(field)


def _key_lines(table: TableSpec) -> Iterator[tuple[str, str]]:
    """Keys of several columns, and a column's second foreign key."""
    if len(table.primary_key) > 1:
        yield f"primary key ({_names(table.primary_key)})", ""
    inline = list(_inline_joins(table).values())
    for join in table.joins:
        if join not in inline:
            yield f"foreign key ({_names(join.columns)}) {_reference(join)}", ""


def _inline_joins(table: TableSpec) -> dict[str, JoinSpec]:
    """The first key of each column that is a key by itself."""
    single = [join for join in table.joins if len(join.columns) == 1]
    return {join.columns[0]: join for join in reversed(single)}


def _reference(join: JoinSpec) -> str:
    return f"references {_name(join.target_table)} ({_names(join.target_columns)})"


def _table_note(table: TableSpec) -> str:
    parts = [_one_line(table.description)]
    if table.row_count is not None:
        parts.append(f"{'about ' if table.row_count_estimated else ''}{table.row_count} rows")
    return "; ".join(part.rstrip(".") for part in parts if part)


def _field_note(field: FieldSpec) -> str:
    parts = [_one_line(field.description).rstrip(".")]
    if field.sample_values:
        parts.append("e.g. " + ", ".join(_literal(value) for value in field.sample_values))
    return "; ".join(part for part in parts if part)


def _field_facts(field: FieldSpec) -> dict[str, object]:
    facts = _without_empty(
        {
            "name": field.field_name,
            "type": field.field_type,
            "description": _one_line(field.description),
            "samples": list(field.sample_values),
        }
    )
    return facts if field.nullable else {**facts, "nullable": False}


def _without_empty(facts: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value not in (None, "", [])}


def _literal(value: SampleValue) -> str:
    if isinstance(value, str):
        return "'" + _one_line(value).replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(table: str) -> str:
    return ".".join(_PREPARER.quote(part) for part in table.split("."))


def _names(columns: Sequence[str]) -> str:
    return ", ".join(_PREPARER.quote(column) for column in columns)


def _one_line(text: str) -> str:
    """The text without line breaks: what follows one would stand outside of the comment."""
    return " ".join(text.split())
