"""Check examples against the stored schema or a live database, and quarantine the broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Engine

from service.db.engine import tenant_transaction
from service.db.lookup import list_nodes
from service.db.quarantine import Judgement, set_quarantine
from service.errors import NotFound, UnreadableMetadata
from service.ingestion.example_sql import check_dialect, find_flaw
from service.ingestion.live_queries import find_live_flaw
from service.ingestion.schema_reader import open_live_database
from service.retrieval.catalog import EXAMPLE, FIELD, TABLE, read_catalog, read_example
from service.types import Node

FindFlaw = Callable[[str], str | None]
OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class BrokenExample:
    """An example that is not returned any more, and why."""

    external_id: str
    question: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What became of the examples; quarantined and released count what changed by this check."""

    checked: int
    quarantined: int
    released: int
    broken: tuple[BrokenExample, ...]


@dataclass(frozen=True, slots=True)
class ExampleCheck:
    """Which examples are checked: a tenant's, of one dataset; a dry run marks none."""

    engine: Engine
    tenant_id: str
    dataset_name: str
    dry_run: bool = False

    def run(
        self,
        *,
        dialect: str = "postgres",
        against: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> CheckReport:
        """Judge every example, mark the broken, and take the mark from those that are repaired.

        against: the URL of a database that plans the queries, in place of the stored schema.
        """
        examples = self._list([EXAMPLE])
        with self._choose_judge(dialect=dialect, against=against) as find:
            judgements = []
            for node in examples:
                judgements.append(Judgement(node, _judge(node, find)))
                if on_progress is not None:
                    on_progress(1)
        changed = {} if self.dry_run else self._mark(judgements)
        return CheckReport(
            checked=len(judgements),
            quarantined=sum(changed.values()),
            released=len(changed) - sum(changed.values()),
            broken=tuple(
                BrokenExample(each.node.external_id, each.node.title, each.reason)
                for each in judgements
                if each.reason is not None
            ),
        )

    @contextmanager
    def _choose_judge(self, *, dialect: str, against: str | None) -> Iterator[FindFlaw]:
        if against is None:
            columns = self._read_columns()
            yield partial(find_flaw, columns=columns, dialect=check_dialect(dialect))
            return
        with open_live_database(against) as connection:
            yield partial(find_live_flaw, connection)

    def _read_columns(self) -> dict[str, set[str]]:
        nodes = self._list([TABLE, FIELD])
        if not nodes:
            raise NotFound(
                f'Tenant "{self.tenant_id}" has no schema in dataset "{self.dataset_name}".',
                hint="Store one with contextforge ingest-schema, or check --against a database.",
            )
        return {
            name.lower(): {field.field_name.lower() for field in table.fields}
            for name, table in read_catalog(nodes).tables.items()
        }

    def _list(self, node_types: Sequence[str]) -> list[Node]:
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            return list_nodes(
                connection,
                self.tenant_id,
                dataset_name=self.dataset_name,
                node_types=node_types,
                every_group=True,
            )

    def _mark(self, judgements: Sequence[Judgement]) -> dict[int, bool]:
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            return set_quarantine(connection, self.tenant_id, judgements=judgements)


def _judge(node: Node, find: FindFlaw) -> str | None:
    try:
        example = read_example(node)
    except UnreadableMetadata as exc:
        return exc.message
    return find(example.sql)
