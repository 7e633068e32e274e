"""Schemas from a JSON file.

The JSON shape (only `tables`, their `name` and `columns`, and a column's `name` and `type` must be
given; `references` is for a key of one column, `foreign_keys` for a key of several):

    {"name": "sales_db",
     "tables": [
       {"name": "orders", "schema": null, "comment": "...", "row_count": 1200,
        "primary_key": ["order_id"],
        "columns": [
          {"name": "customer_id", "type": "integer", "comment": "...", "nullable": false,
           "references": "customers.customer_id", "sample_values": [1, 2, 3]}],
        "foreign_keys": [
          {"columns": ["a", "b"], "table": "pairs", "target_columns": ["a", "b"]}]}]}

The `tables.json` layout of the Spider benchmark, a list of databases, is read as well.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from service.errors import InvalidInput, NotFound
from service.ingestion.schema_model import (
    Column,
    ForeignKey,
    Schema,
    Table,
    check_schema,
    snake_case,
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _ColumnPart(_Part):
    name: str = Field(min_length=1)
    type: str = Field(min_length=1)
    comment: str = ""
    nullable: bool = True
    references: str | None = Field(default=None, pattern=r"^.+\..+$")
    sample_values: list[bool | int | float | str] = []


class _KeyPart(_Part):
    columns: list[str]
    table: str
    target_columns: list[str]


class _TablePart(_Part):
    name: str = Field(min_length=1)
    columns: list[_ColumnPart] = Field(min_length=1)
    schema_: str | None = Field(default=None, alias="schema")
    comment: str = ""
    row_count: int | None = Field(default=None, ge=0)
    primary_key: list[str] = []
    foreign_keys: list[_KeyPart] = []


class _SchemaPart(_Part):
    tables: list[_TablePart]
    name: str | None = None


class _SpiderPart(BaseModel):
    """One database of a Spider file; other keys of it are not needed."""

    db_id: str
    table_names_original: list[str]
    column_names_original: list[tuple[int, str]]
    column_types: list[str]
    table_names: list[str] = []
    column_names: list[tuple[int, str]] = []
    primary_keys: list[int | list[int]] = []
    foreign_keys: list[tuple[int, int]] = []


def read_schema_file(data: bytes, *, database: str | None = None) -> Schema:
    """Read a schema from JSON in our shape or Spider's; `database` chooses one of several."""
    try:
        loaded: object = from_json(data.removeprefix(codecs.BOM_UTF8), allow_inf_nan=False)
    except ValueError as exc:
        raise InvalidInput(f"The schema is not JSON: {exc}.") from exc
    if isinstance(loaded, dict) and "db_id" in loaded:
        loaded = [loaded]
    if isinstance(loaded, list):
        return check_schema(_spider_schema(_choose_database(loaded, database)))
    schema = _own_schema(_validate(_SchemaPart, loaded))
    if database is not None and database != schema.name:
        raise NotFound(f'The file describes "{schema.name or ""}", not "{database}".')
    return check_schema(schema)


_AnyPart = TypeVar("_AnyPart", bound=BaseModel)


def _validate(part: type[_AnyPart], loaded: object) -> _AnyPart:
    """The JSON as that part, or the place of its first flaw: `tables[2].columns[0].type`."""
    try:
        return part.model_validate(loaded)
    except ValidationError as exc:
        flaw = exc.errors(include_url=False)[0]
        place = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in flaw["loc"]
        )
        where = place.lstrip(".") or "its top level"
        raise InvalidInput(f"The schema is wrong at {where}: {flaw['msg']}.") from exc


def _own_schema(part: _SchemaPart) -> Schema:
    return Schema(tuple(_own_table(table) for table in part.tables), name=part.name)


def _own_table(part: _TablePart) -> Table:
    references = [
        ForeignKey((column.name,), *_split_reference(column.references))
        for column in part.columns
        if column.references
    ]
    return Table(
        name=part.name,
        columns=tuple(_own_column(column) for column in part.columns),
        schema=part.schema_,
        comment=part.comment,
        row_count=part.row_count,
        primary_key=tuple(part.primary_key),
        foreign_keys=(
            *references,
            *(
                ForeignKey(tuple(key.columns), key.table, tuple(key.target_columns))
                for key in part.foreign_keys
            ),
        ),
    )


def _own_column(part: _ColumnPart) -> Column:
    return Column(part.name, part.type, part.comment, part.nullable, tuple(part.sample_values))


def _split_reference(reference: str) -> tuple[str, tuple[str, ...]]:
    table, _, column = reference.rpartition(".")
    return table, (column,)


def _choose_database(loaded: list[object], name: str | None) -> _SpiderPart:
    databases = {
        str(each["db_id"]): each for each in loaded if isinstance(each, dict) and "db_id" in each
    }
    if not databases:
        raise InvalidInput("The schema is a list without databases (objects with a db_id).")
    if name is None and len(databases) > 1:
        raise InvalidInput(
            f"The file has {len(databases)} databases: {_some(databases)}.", hint="Choose one."
        )
    chosen = next(iter(databases)) if name is None else name
    if chosen not in databases:
        raise NotFound(f'The file has no database "{chosen}", but {_some(databases)}.')
    return _validate(_SpiderPart, databases[chosen])


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")


def _spider_schema(part: _SpiderPart) -> Schema:
    try:
        return Schema(
            tuple(_spider_table(part, index) for index in range(len(part.table_names_original))),
            name=part.db_id,
        )
    except IndexError as exc:
        raise InvalidInput(
            f'Database "{part.db_id}" names a table or column by a number that it does not have.'
        ) from exc


def _spider_table(part: _SpiderPart, index: int) -> Table:
    """One table; columns are known by their place in the list of the whole database."""
    names = part.column_names_original
    own = [place for place, (table, _) in enumerate(names) if table == index]
    keys = chain.from_iterable(
        [each] if isinstance(each, int) else each for each in part.primary_keys
    )
    name = part.table_names_original[index]
    return Table(
        name=name,
        columns=tuple(
            Column(
                names[place][1],
                part.column_types[place],
                _wording(names[place][1], part.column_names[place][1] if part.column_names else ""),
            )
            for place in own
        ),
        comment=_wording(name, part.table_names[index] if part.table_names else ""),
        primary_key=tuple(names[place][1] for place in keys if names[place][0] == index),
        foreign_keys=tuple(
            ForeignKey(
                (names[source][1],),
                part.table_names_original[names[target][0]],
                (names[target][1],),
            )
            for source, target in part.foreign_keys
            if names[source][0] == index
        ),
    )


def _wording(name: str, words: str) -> str:
    """The words that stand for a name, where they say more than the name does."""
    plain = snake_case(name).replace("_", " ").casefold()
    return "" if words.casefold() in {plain, name.casefold()} else words
