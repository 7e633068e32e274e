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
    list_node_ids,
    lock_document,
    replace_links,
    replace_references,
)
from service.db.nodes import delete_nodes, upsert_nodes
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
from service.ingestion.quarantine import keep_marks
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
    """A source that was left out, and why; whether it is known which nodes it stands for."""

    source: str
    reason: str
    is_known: bool = True


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
    documents: set[str] = field(default_factory=set)

    def note(self, group: NodeGroup) -> None:
        """Remember what the source has, stored or not: prune spares it."""
        # What stands below a document needs no mention: the document replaces it as a whole.
        named = [n for n in group.nodes if n.parent is None or not group.replaces_children]
        self.seen.update(node.external_id for node in named)
        self.seen_types.update(node.node_type for node in named)
        if group.replaces_children:
            self.documents.update(group.tops)

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
            _require_embedder(
                connection, self.tenant_id, embedder=self.embedder, allow_mixed=self.allow_mixed
            )
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
        known = replace(group, embeddings=tuple(vectors))
        try:
            with self._transaction() as connection:
                if group.replaces_children:
                    # Writers of one document wait for each other, else their versions would mix.
                    lock_document(
                        connection,
                        self.tenant_id,
                        external_id=group.source,
                        dataset_name=self.dataset_name,
                    )
                marked = keep_marks(
                    connection, self.tenant_id, dataset_name=self.dataset_name, nodes=group.nodes
                )
                done = upsert_nodes(
                    connection,
                    self.tenant_id,
                    nodes=marked,
                    embeddings=vectors,
                    dataset_name=self.dataset_name,
                    embedder_version=self.embedder.version,
                    allow_mixed=self.allow_mixed,
                )
                if not self.dry_run:
                    self._check_embedded(connection, known)
                gone = self._drop_vanished(connection, group)
                self._connect(connection, group, done=done, tally=tally)
        except _Overtaken:  # ends: each turn embeds at least one node more
            self._store(known, self._embed([known], tally)[0], tally=tally)
            return
        except _FATAL:
            raise
        except ServiceError as exc:
            self._reject(known, exc, tally=tally)
            return
        _count(group, done, tally=tally, lost_children=gone)

    def _reject(self, group: NodeGroup, error: ServiceError, *, tally: _Tally) -> None:
        """Leave the group out; of rows only the bad ones, found by halving."""
        if len(group.places) > 1:
            for half in group.halve():
                self._store(half, list(half.embeddings or ()), tally=tally)
            return
        # Of one row, the hint that nothing of its batch was stored says nothing.
        reason = error.message if group.places else str(error)
        tally.rejected.append(Rejection(group.source, reason))

    def _check_embedded(self, connection: Connection, group: NodeGroup) -> None:
        if group.open_nodes and self._find_stale_nodes(connection, group.open_nodes):
            raise _Overtaken

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

    def _connect(
        self,
        connection: Connection,
        group: NodeGroup,
        *,
        done: Sequence[UpsertedNode],
        tally: _Tally,
    ) -> None:
        added = {node.external_id for node in done if node.action == "added"}
        # Who refers to nothing and is new has nothing to be replaced.
        stated = [each for each in group.references if each.kind or each.source not in added]
        if stated:
            replace_references(
                connection, self.tenant_id, references=stated, dataset_name=self.dataset_name
            )
        # The nodes of a dry run are taken back at once: what they link to is not there.
        if group.linking and not self.dry_run:
            made = replace_links(
                connection,
                self.tenant_id,
                sources=group.linking,
                links=group.links,
                replaced_type="foreign_key",
                dataset_name=self.dataset_name,
            )
            tally.links += sum(link.action == "added" for link in made)

    def _prune(self, connection: Connection, node_types: Collection[str], *, tally: _Tally) -> None:
        """Remove what the source no longer has; nothing if it may have more than could be read."""
        if any(not rejection.is_known for rejection in tally.rejected):
            why = "nothing was removed: which nodes the rejected lines stand for is not known"
            tally.rejected.append(Rejection("--prune", why, is_known=False))
            return
        rejected = {rejection.source for rejection in tally.rejected}
        spared, whole = tally.seen | rejected, tally.documents | rejected
        parents = {
            name: parent
            for name, parent in list_node_ids(
                connection, self.tenant_id, dataset_name=self.dataset_name, node_types=node_types
            )
            if name not in spared and parent not in whole
        }
        delete_nodes(
            connection, self.tenant_id, external_ids=list(parents), dataset_name=self.dataset_name
        )
        tally.removed = sum(parent not in parents for parent in parents.values())

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


def _require_embedder(
    connection: Connection, tenant_id: str, *, embedder: Embedder, allow_mixed: bool
) -> None:
    """Refuse a model that is not the tenant's, unless mixing is allowed and possible."""
    profile = connection.exec_driver_sql(
        "select embedder_version, embedding_dim from contextforge.tenant_profiles"
        " where tenant_id = %s",
        (tenant_id,),
    ).one_or_none()
    version, dimension = profile or (None, None)
    if version is None or version == embedder.version:
        return
    if allow_mixed and dimension == embedder.dimension:
        return
    why = (
        f"Only embeddings of {dimension} dimensions can be mixed with them, and these have "
        f"{embedder.dimension}."
        if allow_mixed
        else "Cosines of two models mean nothing together; --allow-mixed stores them all the "
        "same if their dimensions are equal."
    )
    raise Conflict(
        f'Tenant "{tenant_id}" holds embeddings of {version}, not of {embedder.version}.',
        hint=f"{why} Set EMBEDDING_MODEL to the model it was ingested with, use another "
        "tenant, or change this one's model with: contextforge reembed --tenant "
        f"{tenant_id} --model MODEL",
    )


def _batches(groups: Iterable[NodeGroup | Rejection], tally: _Tally) -> Iterator[list[NodeGroup]]:
    batch: list[NodeGroup] = []
    for group in groups:
        if isinstance(group, Rejection):
            tally.rejected.append(group)
            continue
        kept = _drop_repeated(group, tally)
        tally.note(kept)
        batch.append(kept)
        if sum(len(each.nodes) for each in batch) >= NODES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _drop_repeated(group: NodeGroup, tally: _Tally) -> NodeGroup:
    """The group without rows whose id this source had before: one would overwrite the other."""
    kept: dict[str, int] = {}
    for position, (node, place) in enumerate(zip(group.nodes, group.places, strict=False)):
        if node.external_id in tally.seen or node.external_id in kept:
            why = f'the external_id "{node.external_id}" stands in an earlier row too'
            tally.rejected.append(Rejection(place, why))
        else:
            kept[node.external_id] = position
    return group if len(kept) == len(group.places) else group.pick(list(kept.values()))


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
