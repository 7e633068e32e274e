"""Re-embedding: a tenant's next model, staged beside the present one and switched to at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.reembedding import (
    UnstagedNode,
    drop_staged_embeddings,
    estimate_unstaged,
    list_unstaged_nodes,
    lock_writing,
    read_embedder,
    stage_embeddings,
    switch_embedder,
)
from service.embedding import Embedder, FloatMatrix, text_to_embed
from service.ingestion.regression import Comparison, EmbedderGate

# What an interruption loses at most, and enough texts to keep the model busy.
NODES_AT_ONCE = 512
# What may be embedded while writers wait for the switch: a second or so.
NODES_AT_THE_SWITCH = 64

OnProgress = Callable[[int, int], None]
"""Told how many nodes are done, and of how many in all as far as is known."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a tenant is searched by now; embedded counts this run, switched all new embeddings."""

    tenant_id: str
    previous_version: str | None
    embedder_version: str
    dimension: int
    embedded: int
    switched: int
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Reembedding:
    """A tenant on its way to another model; searches see nothing of it before the switch."""

    engine: Engine
    tenant_id: str
    embedder: Embedder
    gate: EmbedderGate | None = None

    def run(self, *, on_progress: OnProgress | None = None) -> ReembedReport:
        """Embed what is not staged yet, then switch; run again, it goes on where it stopped.

        Where the gate refuses the switch, all stays staged.
        """
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            before = read_embedder(connection, self.tenant_id)
            total = estimate_unstaged(
                connection, self.tenant_id, embedder_version=self.embedder.version
            )
        embedded, switched = 0, None
        comparison: Comparison | None = None
        while switched is None:
            embedded = self._stage_all(embedded, total, on_progress)
            if self.gate is not None and comparison is None:
                comparison = self.gate.check(
                    self.engine, self.tenant_id, version=before.version, following=self.embedder
                )
            late, switched = self._try_switch()
            embedded += late
        return ReembedReport(
            self.tenant_id,
            before.version,
            self.embedder.version,
            self.embedder.dimension,
            embedded,
            switched,
            comparison,
        )

    def _stage_all(self, embedded: int, total: int, on_progress: OnProgress | None) -> int:
        """Embed batch by batch, each kept at once; return how many were embedded by now."""
        last = 0
        while True:
            with tenant_transaction(self.engine, [self.tenant_id]) as connection:
                nodes = self._list_nodes(connection, NODES_AT_ONCE, after=last)
            if not nodes:
                return embedded
            vectors = self._embed(nodes)
            with tenant_transaction(self.engine, [self.tenant_id]) as connection:
                self._stage(connection, nodes, vectors=vectors)
            last = nodes[-1].node_id
            embedded += len(nodes)
            if on_progress is not None:
                on_progress(embedded, max(total, embedded))

    def _try_switch(self) -> tuple[int, int | None]:
        """Hold the writers, embed the few nodes they changed meanwhile, and switch.

        Where they changed many, nothing is switched: those are better embedded while they work.
        """
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            lock_writing(connection, self.tenant_id)
            late = self._list_nodes(connection, NODES_AT_THE_SWITCH + 1)
            if len(late) > NODES_AT_THE_SWITCH:
                return 0, None
            if late:
                self._stage(connection, late, vectors=self._embed(late))
            switched = switch_embedder(
                connection, self.tenant_id, embedder_version=self.embedder.version
            )
        return len(late), switched

    def _list_nodes(
        self, connection: Connection, max_rows: int, *, after: int = 0
    ) -> list[UnstagedNode]:
        return list_unstaged_nodes(
            connection,
            self.tenant_id,
            embedder_version=self.embedder.version,
            max_rows=max_rows,
            after_node_id=after,
        )

    def _embed(self, nodes: Sequence[UnstagedNode]) -> FloatMatrix:
        return self.embedder.embed_documents(
            [text_to_embed(n.title, n.summary, n.content, n.header) for n in nodes]
        )

    def _stage(
        self, connection: Connection, nodes: Sequence[UnstagedNode], *, vectors: FloatMatrix
    ) -> None:
        stage_embeddings(
            connection,
            self.tenant_id,
            nodes=nodes,
            embeddings=list(vectors),
            embedder_version=self.embedder.version,
        )


def abort_reembedding(engine: Engine, tenant_id: str) -> int:
    """Drop what was embedded for the next model; the tenant stays as it is."""
    with tenant_transaction(engine, [tenant_id]) as connection:
        return drop_staged_embeddings(connection, tenant_id)
