"""Nodes of a schema as specs: fields, tables, joins and examples from their metadata (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.errors import UnreadableMetadata
from service.retrieval.joins import JoinGraph
from service.specs import ExampleSpec, FieldSpec, JoinSpec, ReferenceSpec, SampleValue, TableSpec
from service.types import Node

TABLE = "table"
FIELD = "field"
EXAMPLE = "qa_example"


class _Part(BaseModel):
    """What is needed of a node's metadata; other keys are its owner's."""

    model_config = ConfigDict(strict=True)


class _ReferencePart(_Part):
    table: str
    column: str


class _FieldPart(_Part):
    field_name: str = Field(min_length=1)
    field_type: str
    description: str | None = None
    sample_values: list[SampleValue] | None = None
    table: str | None = None
    nullable: bool = True
    primary_key: bool = False
    foreign_key: _ReferencePart | None = None


class _KeyPart(_Part):
    columns: list[str]
    table: str
    target_columns: list[str]


class _TablePart(_Part):
    table: str = Field(min_length=1)
    comment: str | None = None
    row_count: int | None = None
    row_count_estimated: bool = False
    primary_key: list[str] = []
    foreign_keys: list[_KeyPart] = []


class _ExamplePart(_Part):
    question: str
    sql: str
    explanation: str | None = None
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables of a dataset by name, in the order they were stored, and how they join."""

    tables: dict[str, TableSpec]
    graph: JoinGraph

    @property
    def joins(self) -> tuple[JoinSpec, ...]:
        """Every foreign key."""
        return tuple(join for table in self.tables.values() for join in table.joins)


def read_field(node: Node, *, score: float | None = None) -> FieldSpec:
    """The field a node describes; UnreadableMetadata if it describes none."""
    part = _read(_FieldPart, node)
    reference = part.foreign_key
    return FieldSpec(
        field_name=part.field_name,
        field_type=part.field_type,
        description=part.description or "",
        sample_values=tuple(part.sample_values or ()),
        table=part.table or "",
        nullable=part.nullable,
        primary_key=part.primary_key,
        foreign_key=ReferenceSpec(reference.table, reference.column) if reference else None,
        score=score,
        node_id=node.node_id,
    )


def read_example(node: Node, *, score: float | None = None) -> ExampleSpec:
    """The example a node holds; UnreadableMetadata if it holds none."""
    part = _read(_ExamplePart, node)
    return ExampleSpec(
        part.question, part.sql, part.explanation or "", part.verified, score, node.node_id
    )


def read_catalog(nodes: Sequence[Node]) -> Catalog:
    """The tables of a dataset from its table and field nodes; fields alone make a table too."""
    fields: dict[str, list[tuple[int, FieldSpec]]] = {}
    for node in nodes:
        if node.node_type == FIELD:
            field = read_field(node)
            if not field.table:
                raise _unreadable(node, "it names no table")
            fields.setdefault(field.table, []).append((node.order_index or 0, field))
    tables: dict[str, TableSpec] = {}
    for node in nodes:
        if node.node_type == TABLE:
            part = _read(_TablePart, node)
            tables[part.table] = _described_table(part, _in_order(fields.pop(part.table, ())))
    tables |= {name: _bare_table(name, _in_order(found)) for name, found in fields.items()}
    joins = (join for table in tables.values() for join in table.joins)
    return Catalog(tables, JoinGraph(tables, joins))


def _described_table(part: _TablePart, fields: tuple[FieldSpec, ...]) -> TableSpec:
    return TableSpec(
        table=part.table,
        description=part.comment or "",
        row_count=part.row_count,
        row_count_estimated=part.row_count_estimated,
        primary_key=tuple(part.primary_key),
        joins=tuple(
            JoinSpec(part.table, tuple(key.columns), key.table, tuple(key.target_columns))
            for key in part.foreign_keys
        ),
        fields=fields,
    )


def _bare_table(name: str, fields: tuple[FieldSpec, ...]) -> TableSpec:
    """A table that is known by its fields alone."""
    return TableSpec(
        name,
        primary_key=tuple(field.field_name for field in fields if field.primary_key),
        joins=tuple(
            JoinSpec(name, (field.field_name,), key.table, (key.column,))
            for field in fields
            if (key := field.foreign_key) is not None
        ),
        fields=fields,
    )


def _in_order(placed: Iterable[tuple[int, FieldSpec]]) -> tuple[FieldSpec, ...]:
    return tuple(field for _, field in sorted(placed, key=lambda each: each[0]))


_AnyPart = TypeVar("_AnyPart", bound=_Part)


def _read(part: type[_AnyPart], node: Node) -> _AnyPart:
    try:
        return part.model_validate(node.metadata)
    except ValidationError as exc:
        flaw = exc.errors(include_url=False)[0]
        place = ".".join(str(step) for step in flaw["loc"]) or "its top level"
        raise _unreadable(node, f"{place}: {flaw['msg']}") from exc


def _unreadable(node: Node, reason: str) -> UnreadableMetadata:
    return UnreadableMetadata(
        f'The metadata of node {node.node_id} ("{node.external_id}", {node.node_type}, tenant '
        f'"{node.tenant_id}", dataset "{node.dataset_name}") cannot be read: {reason}.',
        hint="Store it again: contextforge ingest-schema, or ingest-examples.",
    )
