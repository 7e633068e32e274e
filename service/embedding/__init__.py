"""Embedders: the shipped MiniLM, or any sentence-transformers model by name or folder."""

from __future__ import annotations

from service.embedding.protocol import Embedder, FloatMatrix, FloatVector, OnProgress
from service.embedding.text import split_identifiers, text_to_embed

__all__ = [
    "DEFAULT_MODEL",
    "Embedder",
    "FloatMatrix",
    "FloatVector",
    "OnProgress",
    "load_embedder",
    "split_identifiers",
    "text_to_embed",
]

DEFAULT_MODEL = "all-MiniLM-L6-v2"


def load_embedder(model: str = DEFAULT_MODEL) -> Embedder:
    """The embedder of that name, ready to use; raises ModelUnavailable if it cannot be loaded."""
    if model.removeprefix("sentence-transformers/") == DEFAULT_MODEL:
        from service.embedding.minilm import load_minilm

        return load_minilm()
    from service.embedding.transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(model)
