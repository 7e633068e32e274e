"""What the packing tests share: documents in pieces, and vectors that are easy to see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.tokens import count_tokens
from service.types import Candidate, Node, Vector
from tests.candidates import make_candidate

_VOCABULARY = """
    harbour tide engine winter cellar captain barometer lantern meadow quarry violin copper
    orchard ledger saddle compass glacier pepper anchor feather marble tunnel ribbon candle
"""
_WORDS = _VOCABULARY.split()


def say(seed: int, *, words: int = 40) -> str:
    """A text of sentences that no other seed makes."""
    dice = np.random.default_rng(seed)
    sentences = []
    for start in range(0, words, 8):
        drawn = dice.choice(_WORDS, size=min(8, words - start))
        sentences.append(f"{' '.join(drawn)} {seed}.".capitalize())
    return " ".join(sentences)


def direction(*values: float, dim: int = 16) -> Vector:
    """The vector with these first values and zeros after them."""
    return np.array([*values, *[0.0] * (dim - len(values))], np.float32)


def axis(number: int, *, dim: int = 16) -> Vector:
    """A vector at a right angle to that of every other number."""
    return direction(*[0.0] * number, 1.0, dim=dim)


def piece(
    node_id: int,
    score: float = 0.5,
    *,
    doc: int = 1000,
    place: int = 0,
    content: str | None = None,
    path: str = "Guide > Setup",
    embedding: Vector | None = None,
    url: str | None = None,
) -> Candidate:
    """A piece of a section of a document, with the count that ingestion would store."""
    text = say(node_id) if content is None else content
    return make_candidate(
        node_id,
        score,
        embedding=embedding,
        content=text,
        parent_id=doc,
        order_index=place,
        section_path=path,
        header=path.rpartition(" > ")[2],
        title="Guide",
        doc_title="Guide",
        token_count=count_tokens(text),
        url=url,
    )


def beside(candidate: Candidate, *others: Candidate) -> dict[int, Sequence[Node]]:
    """The neighbours of one candidate."""
    return {candidate.node.node_id: tuple(other.node for other in others)}
