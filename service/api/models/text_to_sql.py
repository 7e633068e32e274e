"""What text-to-SQL asks for: fields, examples and schemas."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from service.api.models.common import DatasetName, Given, Question, Share, Shown


class GivenFields(Given):
    """Fields that fit a question."""

    query: Question
    dataset_name: DatasetName | None = Field(None, examples=["sales_db"])
    max_results: int = Field(10, ge=1, le=100)
    min_relevance: Share | None = None


class GivenExamples(Given):
    """Examples like a question."""

    query: Question
    dataset_name: DatasetName | None = Field(None, examples=["sales_db"])
    max_results: int = Field(5, ge=1, le=100)
    verified: bool | None = Field(None, description="Only those somebody has looked at, or not.")
    min_relevance: Share | None = None


class GivenSchemaContext(Given):
    """A schema for a prompt."""

    query: Question
    dataset_name: DatasetName = Field(examples=["sales_db"])
    token_budget: int | None = Field(None, ge=1, le=200_000)
    format: Literal["ddl", "json"] = "ddl"


class ShownReference(Shown):
    """The column that a foreign key names."""

    table: str
    column: str


class ShownField(Shown):
    """A database column."""

    field_name: str = Field(examples=["customer_id"])
    field_type: str = Field(examples=["integer"])
    description: str
    sample_values: list[bool | int | float | str]
    table: str = Field(examples=["orders"])
    nullable: bool
    primary_key: bool
    foreign_key: ShownReference | None
    score: float | None
    node_id: int | None


class ShownFields(Shown):
    """Fields, best first."""

    fields: list[ShownField]


class ShownExample(Shown):
    """A question with the SQL that answers it."""

    question: str
    sql: str
    explanation: str
    verified: bool
    score: float | None
    node_id: int | None


class ShownExamples(Shown):
    """Examples, best first; never one that is quarantined."""

    examples: list[ShownExample]


class ShownJoin(Shown):
    """A foreign key."""

    table: str
    columns: list[str]
    target_table: str
    target_columns: list[str]
    condition: str


class ShownTable(Shown):
    """A table with its fields and keys."""

    table: str
    description: str
    row_count: int | None
    row_count_estimated: bool
    primary_key: list[str]
    joins: list[ShownJoin]
    fields: list[ShownField]


class ShownSchemaContext(Shown):
    """A schema as text that never has more tokens than the budget."""

    text: str
    token_count: int
    mode: Literal["whole_schema", "join_complete"]
    tables: list[ShownTable]
    left_out: list[str]
