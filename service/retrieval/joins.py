"""Join completion: the tables on the foreign-key paths between chosen tables (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx

from service.specs import JoinSpec

MOST_JOINS = 4
"""The longest path that is walked to join a table: beyond it tables have little to do together."""


class JoinGraph:
    """The tables of a dataset and the foreign keys between them, whichever way they point."""

    def __init__(self, tables: Iterable[str], joins: Iterable[JoinSpec]) -> None:
        self._graph: nx.Graph[str] = nx.Graph()
        self._graph.add_nodes_from(tables)
        self._joins: dict[frozenset[str], list[JoinSpec]] = {}
        for join in joins:
            if join.table == join.target_table or join.target_table not in self._graph:
                continue
            self._graph.add_edge(join.table, join.target_table)
            pair = frozenset((join.table, join.target_table))
            self._joins.setdefault(pair, []).append(join)

    def find_path(self, chosen: Sequence[str], table: str) -> tuple[str, ...]:
        """The shortest path from one of the chosen tables to this one; the table alone if none.

        The earlier chosen table wins where two are equally near.
        """
        known = [each for each in chosen if each in self._graph]
        if not known or table not in self._graph:
            return (table,)
        try:
            # A list and not a set: the order decides ties, and must be the same next time.
            _, path = nx.multi_source_dijkstra(
                self._graph,
                known,
                target=table,
                cutoff=MOST_JOINS,
            )
        except nx.NetworkXNoPath:
            return (table,)
        return tuple(path)

    def complete(self, tables: Sequence[str]) -> tuple[str, ...]:
        """The tables in their order, each followed by what joins it to those before it."""
        chosen: dict[str, None] = {}
        for table in tables:
            if table not in chosen:
                chosen[table] = None
                others = [each for each in chosen if each != table]
                chosen.update(dict.fromkeys(self.find_path(others, table)))
        return tuple(chosen)

    def joins_within(self, tables: Iterable[str]) -> tuple[JoinSpec, ...]:
        """The foreign keys between these tables."""
        inside = list(tables)
        return tuple(
            join
            for place, first in enumerate(inside)
            for second in inside[place + 1 :]
            for join in self._joins.get(frozenset((first, second)), ())
        )
