"""The shipped all-MiniLM-L6-v2: int8 ONNX where installed, else sentence-transformers; offline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
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
from service.embedding.protocol import (
    Embedder,
    FloatMatrix,
    FloatVector,
    OnProgress,
    format_version,
)
from service.embedding.shipped import ShippedFiles, find_shipped_files
from service.embedding.transformer import SentenceTransformerEmbedder
from service.errors import ModelUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NAME = "all-MiniLM-L6-v2"
_DIMENSION = 384
# Measured on 2 cores: short texts gain from company, 80 words and more are fastest alone.
_LIMITS = BatchLimits(texts=8, characters=700)


def load_minilm() -> Embedder:
    """The fastest installed runtime of the shipped model."""
    files = find_shipped_files()
    if files.int8_weights is not None and find_spec("onnxruntime"):
        return OnnxMiniLM(files, files.int8_weights)
    return load_minilm_transformer(files)


def load_minilm_transformer(files: ShippedFiles) -> SentenceTransformerEmbedder:
    """The shipped weights in full precision, run by sentence-transformers."""
    return SentenceTransformerEmbedder(str(files.folder), name=_NAME, revision=files.revision)


class OnnxMiniLM:
    """The shipped model with int8 weights: less than half the time of the original."""

    def __init__(self, files: ShippedFiles, weights: Path) -> None:
        try:
            self._tokenizer = _load_tokenizer(files)
            self._session = _start_session(weights)
        except Exception as exc:  # the libraries raise bare Exception and kinds of their own
            raise ModelUnavailable(f"The shipped model {_NAME} cannot be loaded: {exc}.") from exc
        self._longest = files.max_tokens * CHARACTERS_PER_TOKEN
        self._version = format_version(_NAME, files.revision, _DIMENSION)
        self._embed_cached = lru_cache(maxsize=QUERY_CACHE_SIZE)(self._embed_one)

    @property
    def version(self) -> str:
        """The same as in full precision, for the reason `ShippedFiles` gives."""
        return self._version

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return _DIMENSION

    def embed_query(self, text: str) -> FloatVector:
        """The vector of a question: read-only, cached, the same for equal texts."""
        return self._embed_cached(text[: self._longest])

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """One row a question, each equal to what `embed_query` returns."""
        return stack_vectors([self.embed_query(text) for text in texts], _DIMENSION)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """One row a text, in the order given."""
        return embed_in_batches(
            [text[: self._longest] for text in texts],
            self._embed_batch,
            dimension=_DIMENSION,
            limits=_LIMITS,
            on_progress=on_progress,
        )

    def _embed_one(self, text: str) -> FloatVector:
        vector: FloatVector = self._embed_batch([text])[0]
        vector.setflags(write=False)
        return vector

    def _embed_batch(self, texts: list[str]) -> FloatMatrix:
        # One by one: encode_batch would start the tokenizer's own threads beside ours.
        encodings = [self._tokenizer.encode(text) for text in texts]
        width = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(texts), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return _pool(self._session.run(None, inputs)[0], mask)


def _pool(states: FloatMatrix, mask: np.ndarray[Any, np.dtype[np.int64]]) -> FloatMatrix:
    """Mean over the real tokens, scaled to length one."""
    sums: FloatMatrix = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
    vectors: FloatMatrix = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return vectors


def _load_tokenizer(files: ShippedFiles) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(files.folder / "tokenizer.json"))
    # The file itself asks for 128 tokens, always padded to 128.
    tokenizer.enable_truncation(files.max_tokens)
    tokenizer.no_padding()
    return tokenizer


def _start_session(weights: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread a call and no spinning: beside other busy processes more threads wait for each
    # other hundreds of milliseconds. Documents use all cores by running several calls at once.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
