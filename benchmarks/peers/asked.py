"""What every system is given: documents, questions, and the vectors of both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AskedSet:
    """Documents and questions, each with its row of vectors."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    bodies: tuple[str, ...]
    vectors: Vectors
    questions: tuple[str, ...]
    question_vectors: Vectors

    @property
    def texts(self) -> list[str]:
        """Title and body as one text, for systems that index one."""
        return [f"{title} {body}" for title, body in zip(self.titles, self.bodies, strict=True)]


def write_asked(asked: AskedSet, folder: Path) -> None:
    """Put a set where another process can read it."""
    rows = {
        "names": asked.names,
        "titles": asked.titles,
        "bodies": asked.bodies,
        "questions": asked.questions,
    }
    (folder / "texts.json").write_text(json.dumps(rows), encoding="utf-8")
    np.save(folder / "vectors.npy", asked.vectors)
    np.save(folder / "question_vectors.npy", asked.question_vectors)


def read_asked(folder: Path) -> AskedSet:
    """Read what write_asked wrote."""
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    return AskedSet(
        names=tuple(rows["names"]),
        titles=tuple(rows["titles"]),
        bodies=tuple(rows["bodies"]),
        vectors=np.load(folder / "vectors.npy"),
        questions=tuple(rows["questions"]),
        question_vectors=np.load(folder / "question_vectors.npy"),
    )
