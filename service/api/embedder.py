"""The embedder of the service: loaded when it is first needed, and timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from service.api.stopwatch import measure
from service.embedding import Embedder, FloatMatrix, FloatVector, OnProgress


class ServiceEmbedder:
    """An embedder whose model is loaded once; a model that cannot be loaded is tried again."""

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._lock = Lock()
        self._loaded: Embedder | None = None

    def warm(self) -> Embedder:
        """Return the model, loading it if nobody has; ModelUnavailable if that fails."""
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:  # another thread may have loaded it meanwhile
                    self._loaded = self._load()
        return self._loaded

    @property
    def version(self) -> str:
        """Model, revision and dimension."""
        return self.warm().version

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self.warm().dimension

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question."""
        with measure("embed"):
            return self.warm().embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """One row a question."""
        with measure("embed"):
            return self.warm().embed_queries(texts)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """One row a text."""
        with measure("embed"):
            return self.warm().embed_documents(texts, on_progress)
