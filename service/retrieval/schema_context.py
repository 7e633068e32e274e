"""A schema within a budget of tokens: whole where it fits, else the best fields, joined (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from service.errors import InvalidInput
from service.retrieval.catalog import Catalog
from service.retrieval.ddl import render_ddl, render_json
from service.specs import (
    ContextFormat,
    ContextMode,
    FieldSpec,
    JoinSpec,
    SchemaContext,
    TableSpec,
)
from service.tokens import CountTokens

Render = Callable[[Sequence[TableSpec]], str]
RENDERERS: dict[ContextFormat, Render] = {"ddl": render_ddl, "json": render_json}

# A column has at least a name, a type and a line break: what has more is not worth rendering.
_LEAST_TOKENS = 2


@dataclass(frozen=True, slots=True)
class Measure:
    """How a context is written, and how many tokens it may have."""

    render: Render
    count_tokens: CountTokens
    budget: int

    def make_context(
        self, tables: Sequence[TableSpec], *, mode: ContextMode
    ) -> SchemaContext | None:
        """The tables as a context; None if they are beyond the budget."""
        if sum(len(table.fields) for table in tables) * _LEAST_TOKENS > self.budget:
            return None
        text = self.render(tables)
        tokens = self.count_tokens(text)
        if tokens > self.budget:
            return None
        return SchemaContext(text, tokens, mode, tuple(tables))


def fit_whole_schema(catalog: Catalog, measure: Measure) -> SchemaContext | None:
    """The whole schema, if the budget holds it."""
    return measure.make_context(list(catalog.tables.values()), mode="whole_schema")


def fit_best_fields(
    catalog: Catalog, ranked: Sequence[FieldSpec], *, measure: Measure
) -> SchemaContext:
    """As many of the ranked fields as the budget holds, with the keys and tables that join them.

    A field that does not fit with what joins it to those before it is left out.
    """
    choice = _Choice()
    context: SchemaContext | None = None
    left_out: list[str] = []
    for field in ranked:
        if field.table not in catalog.tables:  # stored after the tables were read
            continue
        larger = choice.add(field, catalog)
        fitting = measure.make_context(larger.list_tables(catalog), mode="join_complete")
        if fitting is None:
            left_out.append(field.qualified_name)
        else:
            choice, context = larger, fitting
    if context is None:
        found = f"none of the {len(ranked)} fields found" if ranked else "not the whole schema"
        raise InvalidInput(
            f"A budget of {measure.budget} tokens holds {found}.", hint="Raise token_budget."
        )
    return replace(context, left_out=tuple(left_out))


@dataclass(frozen=True, slots=True)
class _Choice:
    """Tables in the order they came, and the fields that were asked for."""

    tables: tuple[str, ...] = ()
    fields: frozenset[tuple[str, str]] = frozenset()

    def add(self, field: FieldSpec, catalog: Catalog) -> _Choice:
        """The choice with one field more, and the tables on the way to its table."""
        path = catalog.graph.find_path(self.tables, field.table)
        tables = dict.fromkeys((*self.tables, field.table, *path))
        return _Choice(tuple(tables), self.fields | {(field.table, field.field_name)})

    def list_tables(self, catalog: Catalog) -> list[TableSpec]:
        """The tables with the chosen fields, their primary keys and the keys that join them."""
        joins = catalog.graph.joins_within(self.tables)
        wanted = set(self.fields)
        for join in joins:
            wanted.update((join.table, column) for column in join.columns)
            wanted.update((join.target_table, column) for column in join.target_columns)
        listed = []
        for name in self.tables:
            table = catalog.tables[name]
            wanted.update((name, column) for column in table.primary_key)
            fields = tuple(each for each in table.fields if (name, each.field_name) in wanted)
            kept = tuple(join for join in table.joins if join in joins or _is_inside(join, wanted))
            listed.append(replace(table, fields=fields, joins=kept))
        return listed


def _is_inside(join: JoinSpec, wanted: Collection[tuple[str, str]]) -> bool:
    """Whether a table's key to itself is shown: it joins nothing new, so it asks for no column."""
    return join.table == join.target_table and all(
        (join.table, column) in wanted for column in (*join.columns, *join.target_columns)
    )
