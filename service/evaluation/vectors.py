"""Vectors computed elsewhere: one row a document or question, in the order of the files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.embedding import FloatMatrix, FloatVector, OnProgress
from service.embedding.protocol import format_version
from service.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class GivenVectors:
    """Vectors of a corpus and of its questions; as an embedder it has nothing for other texts."""

    documents: FloatMatrix
    questions: FloatMatrix
    version: str

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return int(self.documents.shape[1])

    def embed_query(self, text: str) -> FloatVector:
        """Refused: its vectors belong to rows, not to texts."""
        raise InvalidInput(f"There is no vector for {text[:80]!r}.")

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Refused: its vectors belong to rows, not to texts."""
        raise InvalidInput(f"There are no vectors for {len(texts)} texts.")

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """Refused: its vectors belong to rows, not to texts."""
        return self.embed_queries(texts)


def read_vectors(
    documents: Path, questions: Path, *, document_rows: int, question_rows: int, most: int
) -> GivenVectors:
    """Read two .npy files; counts and dimensions must fit the set and the database."""
    by_document = _read_matrix(documents, rows=document_rows)
    by_question = _read_matrix(questions, rows=question_rows)
    dimension = by_document.shape[1]
    if by_question.shape[1] != dimension:
        raise InvalidInput(
            f"{documents} has vectors of {dimension} dimensions, {questions} of "
            f"{by_question.shape[1]}."
        )
    if dimension > most:
        raise InvalidInput(
            f"{documents} has vectors of {dimension} dimensions; the database holds at most {most}."
        )
    digest = hashlib.sha256(by_document.tobytes()).hexdigest()[:12]
    return GivenVectors(by_document, by_question, format_version("given", digest, dimension))


def _read_matrix(path: Path, *, rows: int) -> FloatMatrix:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as exc:
        raise InvalidInput(f"{path}: not a .npy file that can be read ({exc}).") from exc
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise InvalidInput(f"{path}: not a matrix of numbers, one row a text.")
    if len(matrix) != rows:
        raise InvalidInput(f"{path}: {len(matrix)} vectors for {rows} texts.")
    if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
        raise InvalidInput(f"{path}: holds vectors that are zero or not finite.")
    return matrix.astype(np.float32)
