"""Both legs of a search, run once a question: every fusion of them can then be judged in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from service.db.engine import tenant_transaction
from service.db.evaluation import score_nodes
from service.db.search import bm25_search_nodes, vector_search_nodes
from service.errors import InvalidInput
from service.evaluation.beir import Question
from service.evaluation.evaluate import EmbeddedQuestions, OnProgress
from service.evaluation.fusion import Floats, FusionCandidates
from service.evaluation.options import MOST_HITS
from service.evaluation.searchers import Collection, DocumentNames
from service.types import Vector


@dataclass(frozen=True, slots=True)
class AskedLegs:
    """A question's candidates, the document each stands for, and the best cosine there is."""

    question: Question
    candidates: FusionCandidates
    documents: tuple[str, ...]
    best_cosine: float


@dataclass(frozen=True, slots=True)
class LegReader:
    """Runs both legs of a question to a depth."""

    collection: Collection
    depth: int
    names: DocumentNames

    def read(self, question: Question, embedding: Vector) -> AskedLegs:
        """Both legs of one question, and the score that either left out."""
        tenant = self.collection.tenant_id
        with tenant_transaction(self.collection.engine, [tenant]) as connection:
            return self._read(connection, question, embedding=embedding)

    def _read(self, connection: Connection, question: Question, *, embedding: Vector) -> AskedLegs:
        tenant = self.collection.tenant_id
        dataset = question.dataset or self.collection.dataset_name
        node_types = self.collection.node_types
        by_keyword = bm25_search_nodes(
            connection,
            [tenant],
            query_text=question.text,
            node_types=node_types,
            top_k=self.depth,
            dataset_name=dataset,
        )
        by_vector = vector_search_nodes(
            connection,
            [tenant],
            query_embedding=embedding,
            node_types=node_types,
            top_k=self.depth,
            dataset_name=dataset,
        )
        keyword_ids = [node.node_id for node in by_keyword]
        vector_ids = [node.node_id for node in by_vector]
        node_ids = sorted({*keyword_ids, *vector_ids})
        scores = score_nodes(
            connection,
            tenant,
            query_text=question.text,
            query_embedding=embedding,
            node_ids=node_ids,
        )
        candidates = FusionCandidates(
            node_ids=np.array(node_ids, dtype=np.int64),
            keyword_ranks=_ranks(keyword_ids, node_ids),
            vector_ranks=_ranks(vector_ids, node_ids),
            bm25_scores=np.array([each.bm25_score for each in scores]),
            cosines=np.array([_number(each.vector_score) for each in scores]),
        )
        return AskedLegs(
            question,
            candidates,
            documents=tuple(self.names.find(connection, node_ids)),
            best_cosine=max((node.score for node in by_vector), default=0.0),
        )


def read_legs(
    collection: Collection,
    embedded: EmbeddedQuestions,
    *,
    depth: int,
    on_progress: OnProgress | None = None,
) -> list[AskedLegs]:
    """Both legs of every question."""
    if depth > MOST_HITS:
        raise InvalidInput(f"A leg can be read {MOST_HITS} nodes deep, not {depth}.")
    reader = LegReader(collection, depth, DocumentNames(collection.tenant_id))
    read = []
    for question, vector in zip(embedded.questions, embedded.vectors, strict=True):
        read.append(reader.read(question, vector))
        if on_progress is not None:
            on_progress(1)
    return read


def _ranks(found: Sequence[int], node_ids: Sequence[int]) -> Floats:
    places = {node_id: place for place, node_id in enumerate(found, start=1)}
    return np.array([places.get(node_id, math.inf) for node_id in node_ids])


def _number(value: float | None) -> float:
    return math.nan if value is None else value
