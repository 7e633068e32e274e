"""Texts and vectors to measure with: real package descriptions and their MiniLM embeddings.

The set is found at ../shared/data/debian_packages (see --data). Beyond its 63,436 documents, new
ones are made of halves of two real ones, so that word statistics stay those of real text.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.types import NodeDraft

DATA = Path("../shared/data/debian_packages")
DIMENSION = 1024
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Real documents with 1024-d vectors, and queries of both kinds."""

    titles: list[str]
    texts: list[str]
    vectors: Matrix
    queries: list[str]
    query_vectors: Matrix
    seed: int

    def drafts(self, first: int, count: int) -> list[NodeDraft]:
        """Documents first .. first + count as nodes; any number of them, each different."""
        return [self._draft(place) for place in range(first, first + count)]

    def embeddings(self, first: int, count: int) -> Matrix:
        """Vectors of the same documents; repeats differ by noise."""
        places = np.arange(first, first + count)
        rows = self.vectors[places % len(self.vectors)]
        noise = np.random.default_rng(self.seed + first).normal(size=rows.shape)
        repeats = (places // len(self.vectors))[:, None]
        return normalised(rows + np.where(repeats > 0, 0.015, 0.0) * noise)

    def _draft(self, place: int) -> NodeDraft:
        here, lap = place % len(self.texts), place // len(self.texts)
        text = self.texts[here]
        if lap:
            other = self.texts[(here * 7 + lap * 9973) % len(self.texts)]
            text = f"{text[: len(text) // 2]} {other[len(other) // 2 :]}"
        return NodeDraft(f"n{place}", "article", title=self.titles[here], content=text)


def load_corpus(data: Path, *, seed: int) -> Corpus:
    """Read the set and project its vectors to 1024 dimensions, with a little noise."""
    with gzip.open(data / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    with (data / "queries.jsonl").open(encoding="utf-8") as lines:
        queries = [json.loads(line)["text"] for line in lines]
    rng = np.random.default_rng(seed)
    vectors = np.load(data / "corpus_minilm.npy").astype(np.float32)
    projection = np.linalg.qr(rng.normal(size=(DIMENSION, vectors.shape[1])))[0].T
    return Corpus(
        titles=[document["title"] for document in documents],
        texts=[document["text"] for document in documents],
        vectors=_project(vectors, projection, rng),
        queries=[query for query in queries if 3 <= len(query.split()) <= 10],
        query_vectors=_project(
            np.load(data / "queries_minilm.npy").astype(np.float32), projection, rng
        ),
        seed=seed,
    )


def normalised(rows: NDArray[np.floating]) -> Matrix:
    """Rows of length one."""
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _project(vectors: Matrix, projection: NDArray[np.floating], rng: np.random.Generator) -> Matrix:
    projected = vectors @ projection
    return normalised(projected + rng.normal(scale=0.003, size=projected.shape))
