"""txtai's hybrid search with its defaults: BM25 in a file of its own, Faiss, equal weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers.asked import AskedSet, Vectors

PACKAGE = "txtai"


class TxtaiSearcher:
    """An index in memory; the vector of a question is looked up by its text."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        return [name for name, _ in self._index.search(text, top_k)]


@contextmanager
def open_txtai(asked: AskedSet, folder: str) -> Iterator[TxtaiSearcher]:  # noqa: ARG001
    """Index texts and given vectors."""
    from txtai import Embeddings

    texts = asked.texts
    known = dict(zip(texts, asked.vectors, strict=True))
    known |= dict(zip(asked.questions, asked.question_vectors, strict=True))

    def look_up(wanted: Sequence[str]) -> Vectors:
        return np.stack([known[text] for text in wanted])

    index = Embeddings(method="external", transform=look_up, hybrid=True, content=False)
    index.index((name, text, None) for name, text in zip(asked.names, texts, strict=True))
    yield TxtaiSearcher(index)
    index.close()
