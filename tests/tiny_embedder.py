"""A small deterministic embedder: each word has a direction, a text is the sum of its words'."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from zlib import crc32

import numpy as np

from service.embedding import FloatMatrix, FloatVector, OnProgress
from service.embedding.protocol import format_version
from tests.live_database import SMALL_DIM

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TinyEmbedder:
    """Remembers what it was asked to embed; `before_batch` may raise, as a model may fail."""

    model: str = "tiny"
    dimension: int = SMALL_DIM
    before_batch: Callable[[], object] = lambda: None
    batches: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def version(self) -> str:
        return format_version(self.model, "1", self.dimension)

    @property
    def texts(self) -> list[str]:
        """All texts embedded so far."""
        return [text for batch in self.batches for text in batch]

    def embed_query(self, text: str) -> FloatVector:
        vector = np.sum([_direction(word, self.dimension) for word in _words(text)], axis=0)
        unit: FloatVector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        return np.array([self.embed_query(text) for text in texts], dtype=np.float32)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        self.before_batch()
        self.batches.append(tuple(texts))
        if on_progress is not None:
            on_progress(len(texts))
        return self.embed_queries(texts)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower()) or ["nothing"]


@cache
def _direction(word: str, dimension: int) -> FloatVector:
    return np.random.default_rng(crc32(word.encode())).normal(size=dimension).astype(np.float32)
