"""What text-to-SQL is handed: fields, tables, joins and examples as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SampleValue = bool | int | float | str
ContextMode = Literal["whole_schema", "join_complete"]
ContextFormat = Literal["ddl", "json"]


@dataclass(frozen=True, slots=True)
class ReferenceSpec:
    """The column that a foreign key names."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A database column; the score is the combined_score it was found with, if it was searched."""

    field_name: str
    field_type: str
    description: str = ""
    sample_values: tuple[SampleValue, ...] = ()
    table: str = ""
    nullable: bool = True
    primary_key: bool = False
    foreign_key: ReferenceSpec | None = None
    score: float | None = None
    node_id: int | None = None

    @property
    def qualified_name(self) -> str:
        """The column with its table, as SQL names it."""
        return f"{self.table}.{self.field_name}" if self.table else self.field_name


@dataclass(frozen=True, slots=True)
class ExampleSpec:
    """A question with the SQL that answers it; verified: somebody has looked at it."""

    question: str
    sql: str
    explanation: str = ""
    verified: bool = False
    score: float | None = None
    node_id: int | None = None


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A foreign key: columns of a table, and those of the table they name."""

    table: str
    columns: tuple[str, ...]
    target_table: str
    target_columns: tuple[str, ...]

    @property
    def condition(self) -> str:
        """The join condition in SQL."""
        return " and ".join(
            f"{self.table}.{column} = {self.target_table}.{target}"
            for column, target in zip(self.columns, self.target_columns, strict=True)
        )


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table with its fields and keys; row_count is None where nobody counted."""

    table: str
    description: str = ""
    row_count: int | None = None
    row_count_estimated: bool = False
    primary_key: tuple[str, ...] = ()
    joins: tuple[JoinSpec, ...] = ()
    fields: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class MasterConfig:
    """The tables of a dataset, with row counts where known, and the joins between them."""

    dataset_name: str
    tables: tuple[TableSpec, ...]
    joins: tuple[JoinSpec, ...]


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """A schema for a prompt: its text never has more tokens than the budget.

    mode: whole_schema, or join_complete where only the best fields and what joins them fit.
    left_out: fields that were found and did not fit, best first.
    """

    text: str
    token_count: int
    mode: ContextMode
    tables: tuple[TableSpec, ...]
    left_out: tuple[str, ...] = ()
