"""Any sentence-transformers model, by hub name or folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from service.embedding.batching import (
    CHARACTERS_PER_TOKEN,
    QUERY_CACHE_SIZE,
    BatchLimits,
    embed_in_batches,
    stack_vectors,
)
from service.embedding.protocol import FloatMatrix, FloatVector, OnProgress, format_version
from service.embedding.revision import hash_model
from service.errors import ModelUnavailable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_CPU_LIMITS = BatchLimits(texts=32, characters=4500)
_GPU_LIMITS = BatchLimits(texts=256, characters=256_000)
_MOST_TOKENS = 32_768  # some models report none or infinity
HUB_TIMEOUT_SECONDS = 10.0


class SentenceTransformerEmbedder:
    """A sentence-transformers model; its own query and document prompts are applied."""

    def __init__(self, model: str, *, name: str | None = None, revision: str | None = None) -> None:
        """Loads at once; `name` and `revision` replace those found in the model."""
        folder = Path(model)
        self._model = _load(model, local=folder.is_dir())
        # The first call sets the tokenizer's padding; later ones find it set. Done here, before
        # threads share the tokenizer, it cannot fail with "Already borrowed".
        self._dimension: int = self._embed_batch(["text"]).shape[1]
        max_tokens = min(self._model.max_seq_length or _MOST_TOKENS, _MOST_TOKENS)
        self._longest = max_tokens * CHARACTERS_PER_TOKEN
        self._limits = _CPU_LIMITS if self._model.device.type == "cpu" else _GPU_LIMITS
        # A folder is known by its own name: where it lies differs between machines.
        name = name or (folder.resolve().name if folder.is_dir() else model)
        revision = revision or _compute_revision(self._model, max_tokens)
        self._version = format_version(name, revision, self._dimension)
        self._embed_cached = lru_cache(maxsize=QUERY_CACHE_SIZE)(self._embed_one)

    @property
    def version(self) -> str:
        """Model, revision and dimension: vectors compare only within one version."""
        return self._version

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question: read-only, cached, the same for equal texts."""
        return self._embed_cached(text[: self._longest])

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """One row a question, each equal to what `embed_query` returns."""
        return stack_vectors([self.embed_query(text) for text in texts], self._dimension)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """One row a text, in the order given."""
        return embed_in_batches(
            [text[: self._longest] for text in texts],
            self._embed_batch,
            dimension=self._dimension,
            limits=self._limits,
            on_progress=on_progress,
        )

    def _embed_one(self, text: str) -> FloatVector:
        vectors = self._model.encode_query(
            [text], show_progress_bar=False, normalize_embeddings=True
        )
        vector: FloatVector = np.asarray(vectors, dtype=np.float32)[0]
        vector.setflags(write=False)
        return vector

    def _embed_batch(self, texts: list[str]) -> FloatMatrix:
        vectors = self._model.encode_document(
            texts, batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float32)


def _load(model: str, *, local: bool) -> SentenceTransformer:
    try:
        with quiet_loading():
            return _load_local(model) if local else _load_named(model)
    except Exception as exc:  # torch, transformers, the hub and its HTTP client share no class
        reason = str(exc).partition("\n")[0] or type(exc).__name__
        raise ModelUnavailable(
            f"The embedding model {model!r} cannot be loaded ({reason}).",
            hint="Name a model of the Hugging Face hub that is cached or can be downloaded, "
            "or a folder that holds a sentence-transformers model.",
        ) from exc


def _load_local(model: str) -> SentenceTransformer:
    import torch
    from sentence_transformers import SentenceTransformer

    # For the whole process, and for good: beside another busy process two threads wait for each
    # other up to 100 times longer than one works. Documents run on several Python threads instead.
    torch.set_num_threads(1)
    return SentenceTransformer(model, local_files_only=True)


def _load_named(model: str) -> SentenceTransformer:
    """From the local cache if it is there, without a word to the network; else downloaded."""
    from huggingface_hub import model_info
    from sentence_transformers import SentenceTransformer

    try:
        return _load_local(model)
    except OSError:
        # Without this quick question, an unknown name or no network costs a minute of retries.
        model_info(
            model if "/" in model else f"sentence-transformers/{model}",
            timeout=HUB_TIMEOUT_SECONDS,
        )
        return SentenceTransformer(model)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bar for weights on the terminal of whoever runs a command."""
    from transformers.utils import logging as untyped_logging

    logging: Any = untyped_logging
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


def _compute_revision(model: SentenceTransformer, max_tokens: int) -> str:
    import torch

    tensors = (
        # As bytes: numpy does not know every type of torch, bfloat16 for one.
        tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        for tensor in model.state_dict().values()
    )
    return hash_model(tensors, model.prompts, max_tokens)
