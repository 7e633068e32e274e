"""Searchers: a question with its embedding in, ranked documents and times out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.evaluation import name_documents
from service.db.search import bm25_search_nodes, hybrid_search_nodes, vector_search_nodes
from service.evaluation.beir import Question
from service.evaluation.contexts import PackedContext
from service.evaluation.options import MOST_HITS, Retrieval
from service.types import Hit, ScoredNode, Vector


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents found, best first, by external id, and the seconds each step took.

    context: what was packed of them, where a budget was asked for.
    """

    documents: tuple[str, ...]
    seconds: Mapping[str, float]
    context: PackedContext | None = None


class Searcher(Protocol):
    """What an evaluation asks its questions; a section counts as its article."""

    def search(self, question: Question, embedding: Vector) -> Ranking:
        """Rank documents for one question."""


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched: a tenant, all of it or one dataset, all nodes or some types."""

    engine: Engine
    tenant_id: str
    dataset_name: str | None = None
    node_types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """The documents of a tenant's nodes, each looked up once."""

    tenant_id: str
    _known: dict[int, str] = field(default_factory=dict)

    def find(self, connection: Connection, node_ids: Sequence[int]) -> list[str]:
        """The external ids of nodes, in order; a section has its article's."""
        unknown = [node_id for node_id in node_ids if node_id not in self._known]
        if unknown:
            self._known.update(name_documents(connection, self.tenant_id, node_ids=unknown))
        return [self._known[node_id] for node_id in node_ids]


@dataclass(frozen=True, slots=True)
class NodeSearcher:
    """Searches nodes by one leg or both; only the search itself is timed."""

    collection: Collection
    retrieval: Retrieval
    names: DocumentNames

    def search(self, question: Question, embedding: Vector) -> Ranking:
        """Rank documents for one question."""
        tenant = self.collection.tenant_id
        with tenant_transaction(self.collection.engine, [tenant]) as connection:
            started = time.perf_counter()
            node_ids = self._find(connection, question, embedding=embedding)
            seconds = time.perf_counter() - started
            documents = self.names.find(connection, node_ids)
        ranked = rank_documents(documents, question, top_k=self.retrieval.top_k)
        return Ranking(ranked, {"search": seconds})

    def _find(self, connection: Connection, question: Question, *, embedding: Vector) -> list[int]:
        tenants = [self.collection.tenant_id]
        dataset = question.dataset or self.collection.dataset_name
        # The question itself may be a document, which is taken out.
        one_more = min(MOST_HITS, self.retrieval.top_k + 1)
        node_types = self.collection.node_types
        found: Sequence[ScoredNode | Hit]
        if self.retrieval.mode == "bm25":
            found = bm25_search_nodes(
                connection,
                tenants,
                query_text=question.text,
                node_types=node_types,
                top_k=one_more,
                dataset_name=dataset,
            )
        elif self.retrieval.mode == "vector":
            found = vector_search_nodes(
                connection,
                tenants,
                query_embedding=embedding,
                node_types=node_types,
                top_k=one_more,
                dataset_name=dataset,
            )
        else:
            settings = self.retrieval.settings
            found = hybrid_search_nodes(
                connection,
                tenants,
                query_text=question.text,
                query_embedding=embedding,
                node_types=node_types,
                top_k=self.retrieval.hits,
                bm25_weight=settings.hybrid_keyword_weight,
                vector_weight=settings.hybrid_vector_weight,
                dataset_name=dataset,
                fusion=settings.hybrid_fusion,
                rrf_k=settings.hybrid_rrf_k,
            )
        return [node.node_id for node in found]


def rank_documents(documents: Iterable[str], question: Question, *, top_k: int) -> tuple[str, ...]:
    """Each document once, at its best place, without the question itself where it is one."""
    ranked = dict.fromkeys(each for each in documents if each != question.query_id)
    return tuple(ranked)[:top_k]
