"""How alike the texts of candidates are: by their vectors, or by their words (pure)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from service.types import Vector

Matrix = NDArray[np.float32]

# Two sections of one subject have a cosine up to about 0.8 and say different things; what is
# beyond counts as repetition, in full at 1.
SUBJECT_COSINE = 0.8

_WORD = re.compile(r"\w+")
_BUCKETS = 512
# Multiplications that OpenBLAS does on one thread. A larger product of two hundred vectors takes
# 0.2 ms on free cores and 30 ms on busy ones, where its threads wait for each other.
_ONE_THREAD = 250_000


def measure_similarity(vectors: Sequence[Vector | None], bodies: Sequence[str]) -> Matrix:
    """The cosine of each two texts; by their words where one of them has no vector."""
    count = len(bodies)
    similarity: Matrix = np.zeros((count, count), np.float32)
    sizes = np.array([_size(vector) for vector in vectors], int)
    for size in set(sizes.tolist()) - {0}:  # cosines of two models mean nothing together
        places = np.flatnonzero(sizes == size)
        units = _normalise(np.array([each for each in vectors if _size(each) == size]))
        similarity[np.ix_(places, places)] = _multiply(units)
    bare = np.flatnonzero(sizes == 0)
    if bare.size:
        words = _normalise(np.array([_count_words(body) for body in bodies]))
        shared = words[bare] @ words.T
        similarity[bare] = shared
        similarity[:, bare] = shared.T
    return similarity


def measure_repetition(similarity: Matrix) -> Matrix:
    """0 for texts that at most share a subject, 1 for the same text twice."""
    repeated: Matrix = np.clip((similarity - SUBJECT_COSINE) / (1 - SUBJECT_COSINE), 0, 1)
    return repeated


def _multiply(units: Matrix) -> Matrix:
    """The product of each two rows, in tiles."""
    count, size = units.shape
    side = max(1, math.isqrt(_ONE_THREAD // size))
    product: Matrix = np.empty((count, count), np.float32)
    for row in range(0, count, side):
        for column in range(row, count, side):
            tile = units[row : row + side] @ units[column : column + side].T
            product[row : row + side, column : column + side] = tile
            product[column : column + side, row : row + side] = tile.T
    return product


def _size(vector: Vector | None) -> int:
    return 0 if vector is None else vector.size


def _normalise(rows: NDArray[np.number]) -> Matrix:
    matrix: Matrix = rows.astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths > 0, lengths, 1)
    return matrix


def _count_words(body: str) -> NDArray[np.intp]:
    places = [crc32(word.encode()) % _BUCKETS for word in _WORD.findall(body.lower())]
    return np.bincount(places, minlength=_BUCKETS)
