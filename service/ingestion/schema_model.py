"""A database schema as values, and the table and field nodes it becomes (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.errors import InvalidInput
from service.types import Json, LinkDraft, NodeDraft

Scalar = bool | int | float | str

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type as the database spells it, what it means, values it holds."""

    name: str
    type: str
    comment: str = ""
    nullable: bool = True
    sample_values: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns of one table that name a row of another; table is the other's qualified name."""

    columns: tuple[str, ...]
    table: str
    target_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its keys; schema stands in its qualified name unless it is the default one."""

    name: str
    columns: tuple[Column, ...]
    schema: str | None = None
    comment: str = ""
    row_count: int | None = None
    row_count_estimated: bool = False
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def qualified_name(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one database."""

    tables: tuple[Table, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaNodes:
    """A schema as it is stored: tables before their fields, foreign keys as links."""

    nodes: tuple[NodeDraft, ...]
    links: tuple[LinkDraft, ...]


def schema_nodes(schema: Schema) -> SchemaNodes:
    """The nodes and links of a schema.

    A foreign key that leaves the schema stays in the metadata and gives no link.
    """
    nodes: list[NodeDraft] = []
    for table in schema.tables:
        nodes.append(_table_node(table))
        nodes.extend(_field_nodes(table))
    known = {node.external_id for node in nodes}
    pairs = dict.fromkeys(pair for table in schema.tables for pair in _link_pairs(table))
    links = [
        LinkDraft(source, target, "foreign_key")
        for source, target in pairs
        if source != target and target in known
    ]
    return SchemaNodes(tuple(nodes), tuple(links))


def prefix_tables(schema: Schema, database: str) -> Schema:
    """The schema with the database before each table's name: several fit into one dataset then."""
    return replace(
        schema,
        tables=tuple(
            replace(
                table,
                schema=f"{database}.{table.schema}" if table.schema else database,
                foreign_keys=tuple(
                    replace(key, table=f"{database}.{key.table}") for key in table.foreign_keys
                ),
            )
            for table in schema.tables
        ),
    )


def check_schema(schema: Schema) -> Schema:
    """Return the schema, or name the first table, column or key that contradicts the rest."""
    columns: dict[str, set[str]] = {}
    for table in schema.tables:
        name = table.qualified_name
        if name in columns:
            raise InvalidInput(f'Table "{name}" is described twice.')
        columns[name] = _column_names(table)
    for table in schema.tables:
        _check_keys(table, columns)
    return schema


def snake_case(name: str) -> str:
    """The name with an underscore wherever a capital begins a word."""
    return _HUMP.sub("_", name)


def _column_names(table: Table) -> set[str]:
    names: set[str] = set()
    for column in table.columns:
        if column.name in names:
            raise InvalidInput(f'Table "{table.qualified_name}" has column "{column.name}" twice.')
        names.add(column.name)
    return names


def _check_keys(table: Table, columns: dict[str, set[str]]) -> None:
    own = table.qualified_name
    _require_columns(f'The primary key of "{own}"', own, names=table.primary_key, columns=columns)
    for key in table.foreign_keys:
        what = f"The foreign key {own}({', '.join(key.columns)})"
        if len(key.columns) != len(key.target_columns) or not key.columns:
            raise InvalidInput(
                f"{what} has {len(key.columns)} columns and {len(key.target_columns)} targets."
            )
        _require_columns(what, own, names=key.columns, columns=columns)
        _require_columns(what, key.table, names=key.target_columns, columns=columns)


def _require_columns(
    what: str, table: str, *, names: tuple[str, ...], columns: dict[str, set[str]]
) -> None:
    if table not in columns:
        raise InvalidInput(f'{what} names table "{table}", which the schema does not have.')
    for name in names:
        if name not in columns[table]:
            raise InvalidInput(
                f'{what} names column "{table}.{name}", which the schema does not have.'
            )


# --- nodes ------------------------------------------------------------------------------------


def _table_node(table: Table) -> NodeDraft:
    return NodeDraft(
        external_id=_table_id(table.qualified_name),
        node_type="table",
        title=table.name,
        summary=table.comment,
        content=_describe_table(table),
        metadata={
            "table": table.qualified_name,
            "comment": table.comment,
            "row_count": table.row_count,
            "row_count_estimated": table.row_count_estimated,
            "primary_key": list(table.primary_key),
            "columns": [{"name": each.name, "type": each.type} for each in table.columns],
            "foreign_keys": [
                {
                    "columns": list(key.columns),
                    "table": key.table,
                    "target_columns": list(key.target_columns),
                }
                for key in table.foreign_keys
            ],
        },
    )


def _field_nodes(table: Table) -> Iterator[NodeDraft]:
    targets = _first_targets(table)
    for place, column in enumerate(table.columns):
        target = targets.get(column.name)
        yield NodeDraft(
            external_id=_field_id(table.qualified_name, column.name),
            node_type="field",
            title=column.name,
            summary=column.comment,
            content=_describe_field(table, column, target=target),
            metadata=_field_metadata(table, column, target=target),
            parent=_table_id(table.qualified_name),
            order_index=place,
        )


def _field_metadata(
    table: Table, column: Column, *, target: tuple[str, str] | None
) -> dict[str, Json]:
    return {
        "table": table.qualified_name,
        "field_name": column.name,
        "qualified_name": f"{table.qualified_name}.{column.name}",
        "field_type": column.type,
        "description": column.comment,
        "sample_values": list(column.sample_values),
        "nullable": column.nullable,
        "primary_key": column.name in table.primary_key,
        "foreign_key": {"table": target[0], "column": target[1]} if target else None,
    }


def _first_targets(table: Table) -> dict[str, tuple[str, str]]:
    """For each referring column the table and column it names; a column's first key counts."""
    targets: dict[str, tuple[str, str]] = {}
    for key in table.foreign_keys:
        for column, target in zip(key.columns, key.target_columns, strict=True):
            targets.setdefault(column, (key.table, target))
    return targets


def _describe_table(table: Table) -> str:
    targets = _first_targets(table)
    columns = []
    for column in table.columns:
        facts = [f"{column.name} {column.type}", *_key_facts(table, column, targets=targets)]
        note = f" ({column.comment.rstrip('.')})" if column.comment else ""
        columns.append(" ".join(facts) + note)
    return f"table {_say_table(table.qualified_name)} with columns " + "; ".join(columns)


def _describe_field(table: Table, column: Column, *, target: tuple[str, str] | None) -> str:
    targets = {column.name: target} if target else {}
    facts = [
        f"column {column.name} of table {_say_table(table.qualified_name)}",
        f"type {column.type}",
        *_key_facts(table, column, targets=targets),
    ]
    if column.sample_values:
        facts.append("for example " + ", ".join(str(value) for value in column.sample_values))
    return ", ".join(facts)


def _key_facts(
    table: Table, column: Column, *, targets: dict[str, tuple[str, str]]
) -> Iterator[str]:
    if column.name in table.primary_key:
        yield "primary key"
    if column.name in targets:
        other, target = targets[column.name]
        yield f"references {target} of {_say_table(other)}"


def _say_table(qualified_name: str) -> str:
    """The name without dots: the text search would take sales.orders for the name of a host."""
    schema, _, name = qualified_name.rpartition(".")
    return f"{name} in {schema.replace('.', ' ')}" if schema else name


# --- links and identities ---------------------------------------------------------------------


def _link_pairs(table: Table) -> Iterator[tuple[str, str]]:
    own = table.qualified_name
    for key in table.foreign_keys:
        yield _table_id(own), _table_id(key.table)
        for column, target in zip(key.columns, key.target_columns, strict=True):
            yield _field_id(own, column), _field_id(key.table, target)


def _table_id(table: str) -> str:
    return f"table:{table}"


def _field_id(table: str, column: str) -> str:
    return f"field:{table}.{column}"
