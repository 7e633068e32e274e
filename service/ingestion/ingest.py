"""Ingestion: embed what is new or changed, then write each document in a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.ingestion import (
    find_stale_nodes,
    link_references,
    list_child_ids,
    list_top_ids,
    lock_document,
    replace_references,
)
from service.db.nodes import delete_nodes, upsert_links, upsert_nodes
from service.embedding import Embedder, text_to_embed
from service.errors import (
    Conflict,
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    NotFound,
    ServiceError,
)
from service.ingestion.convert import NodeGroup
from service.types import NodeDraft, UpsertedNode, Vector

# Enough texts at once to keep the model busy, few enough to keep memory flat.
NODES_AT_ONCE = 512
# What goes wrong with the database or the tenant goes wrong for every document.
_FATAL = (DatabaseUnavailable, Forbidden, NotFound)

OnProgress = Callable[[int], None]


class _Overtaken(Exception):
    """Another writer changed a node that needed no embedding when it was looked at."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A source that was left out, and why; whether it is one document, known by that name."""

    source: str
    reason: str
    is_document: bool = True


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of the documents; nodes counts them with their sections."""

    added: int
    changed: int
    unchanged: int
    removed: int
    nodes: int
    embedded: int
    links: int
    rejected: tuple[Rejection, ...]


@dataclass(slots=True)
class _Tally:
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    nodes: int = 0
    embedded: int = 0
    links: int = 0
    rejected: list[Rejection] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    seen_types: set[str] = field(default_factory=set)

    def report(self) -> IngestReport:
        return IngestReport(
            self.added,
            self.changed,
            self.unchanged,
            self.removed,
            self.nodes,
            self.embedded,
            self.links,
            tuple(self.rejected),
        )


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Where documents go: the tenant and dataset, and the model that embeds them."""

    engine: Engine
    tenant_id: str
    embedder: Embedder
    dataset_name: str = "default"
    dry_run: bool = False
    allow_mixed: bool = False

    def run(
        self,
        groups: Iterable[NodeGroup | Rejection],
        *,
        prune: bool = False,
        prune_types: Collection[str] = (),
        on_progress: OnProgress | None = None,
    ) -> IngestReport:
        """Store the groups; with prune, remove what the dataset has and the source has not.

        Only nodes of the types the source has, or of `prune_types`, are removed: documents, tables
        and examples of one dataset come from different sources.
        """
        tally = _Tally()
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            self._require_embedder(connection)
        for batch in _batches(groups, tally):
            for group, vectors in zip(batch, self._embed(batch, tally), strict=True):
                self._store(group, vectors, tally=tally)
                if on_progress is not None:
                    on_progress(len(group.tops))
        with self._transaction() as connection:
            if prune:
                self._prune(connection, {*prune_types, *tally.seen_types}, tally=tally)
            tally.links += link_references(
                connection, self.tenant_id, dataset_name=self.dataset_name
            )
        return tally.report()

    def _require_embedder(self, connection: Connection) -> None:
        profile = connection.exec_driver_sql(
            "select embedder_version, embedding_dim from contextforge.tenant_profiles"
            " where tenant_id = %s",
            (self.tenant_id,),
        ).one_or_none()
        version, dimension = profile or (None, None)
        if version is None or version == self.embedder.version:
            return
        if self.allow_mixed and dimension == self.embedder.dimension:
            return
        why = (
            f"Only embeddings of {dimension} dimensions can be mixed with them, and these have "
            f"{self.embedder.dimension}."
            if self.allow_mixed
            else "Cosines of two models mean nothing together; --allow-mixed stores them all the "
            "same if their dimensions are equal."
        )
        raise Conflict(
            f'Tenant "{self.tenant_id}" holds embeddings of {version}, not of '
            f"{self.embedder.version}.",
            hint=f"{why} Set EMBEDDING_MODEL to the model it was ingested with, use another "
            "tenant, or change this one's model with: contextforge reembed --tenant "
            f"{self.tenant_id} --model MODEL",
        )

    def _embed(self, batch: Sequence[NodeGroup], tally: _Tally) -> list[list[Vector | None]]:
        stale = self._find_stale(batch)
        wanted = [n for group in batch for n in group.open_nodes if n.external_id in stale]
        texts = [text_to_embed(n.title, n.summary, n.content, n.header) for n in wanted]
        tally.embedded += len(texts)
        vectors: dict[str, Vector] = {}
        if texts and not self.dry_run:
            matrix = self.embedder.embed_documents(texts)
            vectors = {node.external_id: row for node, row in zip(wanted, matrix, strict=True)}
        return [
            [
                vectors.get(node.external_id) if given is None else given
                for node, given in group.embedded_nodes
            ]
            for group in batch
        ]

    def _find_stale(self, batch: Sequence[NodeGroup]) -> set[str]:
        """The ids of the nodes that need a vector and bring none."""
        try:
            with tenant_transaction(self.engine, [self.tenant_id]) as connection:
                return self._find_stale_nodes(
                    connection, [node for group in batch for node in group.open_nodes]
                )
        except InvalidInput:  # one document's flaw must not stop the others
            if len(batch) == 1:
                return set()  # refused again, and reported, when it is stored
            return {each for group in batch for each in self._find_stale([group])}

    def _find_stale_nodes(self, connection: Connection, nodes: Sequence[NodeDraft]) -> set[str]:
        return find_stale_nodes(
            connection,
            self.tenant_id,
            nodes=nodes,
            embedder_version=self.embedder.version,
            dataset_name=self.dataset_name,
        )

    def _store(self, group: NodeGroup, vectors: list[Vector | None], *, tally: _Tally) -> None:
        tally.seen.update(group.tops)
        tally.seen_types.update(node.node_type for node in group.nodes if node.parent is None)
        known = replace(group, embeddings=tuple(vectors))
        try:
            with self._transaction() as connection:
                if group.replaces_children:
                    self._lock_document(connection, group)
                done = upsert_nodes(
                    connection,
                    self.tenant_id,
                    nodes=group.nodes,
                    embeddings=vectors,
                    dataset_name=self.dataset_name,
                    embedder_version=self.embedder.version,
                    allow_mixed=self.allow_mixed,
                )
                if not self.dry_run:
                    self._check_embedded(connection, known)
                gone = self._drop_vanished(connection, group)
                self._connect(connection, group, tally=tally)
        except _Overtaken:  # ends: each turn embeds at least one node more
            self._store(known, self._embed([known], tally)[0], tally=tally)
            return
        except _FATAL:
            raise
        except ServiceError as exc:
            tally.rejected.append(Rejection(group.source, str(exc)))
            return
        _count(group, done, tally=tally, lost_children=gone)

    def _check_embedded(self, connection: Connection, group: NodeGroup) -> None:
        if group.open_nodes and self._find_stale_nodes(connection, group.open_nodes):
            raise _Overtaken

    def _lock_document(self, connection: Connection, group: NodeGroup) -> None:
        """Let writers of one document wait for each other, else their versions would mix."""
        lock_document(
            connection, self.tenant_id, external_id=group.source, dataset_name=self.dataset_name
        )

    def _drop_vanished(self, connection: Connection, group: NodeGroup) -> bool:
        """Delete the sections a document no longer has."""
        if not group.replaces_children:
            return False
        stored = list_child_ids(
            connection, self.tenant_id, dataset_name=self.dataset_name, parents=group.tops
        )
        kept = {node.external_id for node in group.nodes}
        vanished = [each for each in stored if each not in kept]
        if vanished:
            delete_nodes(
                connection,
                self.tenant_id,
                external_ids=vanished,
                dataset_name=self.dataset_name,
            )
        return bool(vanished)

    def _connect(self, connection: Connection, group: NodeGroup, *, tally: _Tally) -> None:
        if group.references:
            replace_references(
                connection,
                self.tenant_id,
                references=group.references,
                dataset_name=self.dataset_name,
            )
        # The nodes of a dry run are taken back at once: what they link to is not there.
        if group.links and not self.dry_run:
            made = upsert_links(
                connection, self.tenant_id, links=group.links, dataset_name=self.dataset_name
            )
            tally.links += sum(link.action == "added" for link in made)

    def _prune(self, connection: Connection, node_types: Collection[str], *, tally: _Tally) -> None:
        """Remove what the source no longer has; nothing if it may have more than could be read."""
        if any(not rejection.is_document for rejection in tally.rejected):
            why = "nothing was removed: which nodes the rejected lines stand for is not known"
            tally.rejected.append(Rejection("--prune", why, is_document=False))
            return
        stored = list_top_ids(
            connection, self.tenant_id, dataset_name=self.dataset_name, node_types=node_types
        )
        spared = {rejection.source for rejection in tally.rejected}
        vanished = [each for each in stored if each not in tally.seen and each not in spared]
        delete_nodes(
            connection, self.tenant_id, external_ids=vanished, dataset_name=self.dataset_name
        )
        tally.removed = len(vanished)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction of the tenant; a dry run takes it back."""
        with tenant_transaction(self.engine, [self.tenant_id]) as connection:
            if not self.dry_run:
                yield connection
                return
            savepoint = connection.begin_nested()
            yield connection
            savepoint.rollback()


def _batches(groups: Iterable[NodeGroup | Rejection], tally: _Tally) -> Iterator[list[NodeGroup]]:
    batch: list[NodeGroup] = []
    for group in groups:
        if isinstance(group, Rejection):
            tally.rejected.append(group)
            continue
        batch.append(group)
        if sum(len(each.nodes) for each in batch) >= NODES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _count(
    group: NodeGroup, done: Sequence[UpsertedNode], *, tally: _Tally, lost_children: bool
) -> None:
    """Count documents: one whose sections changed has changed."""
    actions = {node.external_id: node.action for node in done}
    touched = {
        node.parent
        for node in group.nodes
        if node.parent is not None and actions.get(node.external_id) != "unchanged"
    }
    tally.nodes += len(done)
    for top in group.tops:
        if actions.get(top) == "added":
            tally.added += 1
        elif actions.get(top) == "changed" or top in touched or lost_children:
            tally.changed += 1
        else:
            tally.unchanged += 1
