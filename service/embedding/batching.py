"""Document batches: similar lengths together, spread over threads, rows back in input order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from service.embedding.protocol import FloatMatrix, FloatVector, OnProgress

CHARACTERS_PER_TOKEN = 32
"""No language fills its tokens this well: text beyond this many a token is truncated anyway."""
QUERY_CACHE_SIZE = 1024


@dataclass(frozen=True)
class BatchLimits:
    """How large a batch may grow: texts, and characters once padded to the longest text."""

    texts: int
    characters: int


def embed_in_batches(
    texts: Sequence[str],
    encode: Callable[[list[str]], FloatMatrix],
    *,
    dimension: int,
    limits: BatchLimits,
    on_progress: OnProgress | None = None,
) -> FloatMatrix:
    """Rows of `encode` for all texts, in input order; `encode` runs on several threads at once."""
    rows = np.empty((len(texts), dimension), dtype=np.float32)
    batches = list(batch_by_length(texts, limits))
    pool = ThreadPoolExecutor(max_workers=_count_cores(), thread_name_prefix="embed")
    try:
        results = pool.map(lambda batch: encode([texts[i] for i in batch]), batches)
        for batch, vectors in zip(batches, results, strict=True):
            rows[batch] = vectors
            if on_progress is not None:
                on_progress(len(batch))
    finally:
        # After a failure or Ctrl-C, only the batches already running are waited for.
        pool.shutdown(cancel_futures=True)
    return rows


def stack_vectors(vectors: Sequence[FloatVector], dimension: int) -> FloatMatrix:
    """One row a vector; no vectors make a matrix without rows."""
    return np.stack(vectors) if vectors else np.empty((0, dimension), dtype=np.float32)


def batch_by_length(texts: Sequence[str], limits: BatchLimits) -> Iterator[list[int]]:
    """Positions of the texts, longest first, cut where the next text would exceed the limits."""
    batch: list[int] = []
    for position in sorted(range(len(texts)), key=lambda i: -len(texts[i])):
        size = len(batch) + 1
        padded = size * len(texts[batch[0] if batch else position])
        if batch and (size > limits.texts or padded > limits.characters):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _count_cores() -> int:
    """Cores this process may use; a container often sees fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
