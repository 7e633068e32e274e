"""What every embedder promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

FloatVector: TypeAlias = npt.NDArray[np.float32]
"""One embedding: shape (dimension,)."""
FloatMatrix: TypeAlias = npt.NDArray[np.float32]
"""One embedding a row: shape (texts, dimension)."""
OnProgress: TypeAlias = Callable[[int], None]
"""Told, on the calling thread, how many more texts are done."""


class Embedder(Protocol):
    """Turns text into unit vectors; safe to share between threads."""

    @property
    def version(self) -> str:
        """Model, revision and dimension: vectors compare only within one version."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question: read-only, cached, the same for equal texts."""

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """One row a question, each equal to what `embed_query` returns."""

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """One row a text, in the order given."""


def format_version(model: str, revision: str, dimension: int) -> str:
    """The `embedder_version` stored with every node."""
    return f"{model}@{revision}/{dimension}"
