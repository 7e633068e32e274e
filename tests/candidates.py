"""Candidates made of a few numbers, and vectors whose cosines are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from service.embedding import FloatMatrix, FloatVector, OnProgress
from service.types import Candidate, Node, Vector
from tests.live_database import SMALL_DIM

LONG_TEXT = " ".join(["sentence"] * 60)


def make_candidate(
    node_id: int = 1,
    score: float = 0.5,
    *,
    cosine: float | None = 0.8,
    confidence: float | None = None,
    embedding: Vector | None = None,
    **fields: object,
) -> Candidate:
    """A candidate; fields are those of its node."""
    node = Node(
        node_id=node_id,
        tenant_id="acme",
        external_id=f"n{node_id}",
        dataset_name="default",
        node_type="section",
        title=f"Title {node_id}",
        summary="",
        content=LONG_TEXT,
        metadata={},
        parent_id=None,
        section_path=None,
        order_index=None,
        header=None,
        doc_title=None,
        url=None,
        lang=None,
        space_id=None,
        token_count=None,
        content_hash=node_id.to_bytes(4, "big", signed=True),
    )
    return Candidate(
        replace(node, **fields),  # type: ignore[arg-type]
        score,
        vector_score=cosine,
        confidence=confidence,
        combined_score=score,
        embedding=embedding,
    )


def ids(candidates: Sequence[Candidate]) -> list[int]:
    return [each.node.node_id for each in candidates]


def with_cosine(cosine: float, *, axis: int = 1) -> Vector:
    """A unit vector of that cosine with what AxisEmbedder makes of any question."""
    vector = np.zeros(SMALL_DIM, dtype=np.float32)
    vector[0] = cosine
    vector[axis] = math.sqrt(1 - cosine**2)
    return vector


@dataclass(frozen=True, slots=True)
class AxisEmbedder:
    """Every question has the same vector, so the nodes' vectors decide; it counts its batches."""

    version: str = "axis@1/8"
    dimension: int = SMALL_DIM
    batches: list[tuple[str, ...]] = field(default_factory=list)

    def embed_query(self, text: str) -> FloatVector:
        return with_cosine(1.0)

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        self.batches.append(tuple(texts))
        return np.array([self.embed_query(text) for text in texts], dtype=np.float32)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        return self.embed_queries(texts)
