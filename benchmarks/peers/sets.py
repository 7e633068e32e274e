"""The two sets that the systems are compared on: one judged and small, one large."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.peers.asked import AskedSet
from service.evaluation.beir import Judgements, Question, read_objects, read_set

SCIFACT = "scifact"
DEBIAN = "debian_packages"


@dataclass(frozen=True, slots=True)
class ContestSet:
    """A set to ask, and which documents answer which question."""

    name: str
    asked: AskedSet
    query_ids: tuple[str, ...]
    judgements: Judgements


def read_scifact(data: Path, *, most_questions: int | None = None) -> ContestSet:
    """SciFact's abstracts and its judged test questions."""
    folder = data / SCIFACT
    judged = read_set(folder)
    questions = judged.questions[:most_questions]
    ids = tuple(question.query_id for question in questions)
    rows = [values for _, values in read_objects(judged.corpus)]
    return ContestSet(
        SCIFACT,
        _make_asked(folder, rows, questions),
        ids,
        {query_id: judged.judgements[query_id] for query_id in ids},
    )


def read_debian(
    data: Path, *, most_documents: int | None = None, most_questions: int | None = None
) -> ContestSet:
    """Package descriptions; a question is a span of one, so what holds the span answers it."""
    folder = data / DEBIAN
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, most_documents)]
    asked = enumerate(values for _, values in read_objects(folder / "queries.jsonl"))
    questions = [
        Question(str(values["_id"]), str(values["text"]), row)
        for row, values in islice(asked, most_questions)
    ]
    ids = tuple(question.query_id for question in questions)
    contest = _make_asked(folder, rows, questions)
    return ContestSet(DEBIAN, contest, ids, _find_spans(contest, ids))


def _find_spans(asked: AskedSet, query_ids: tuple[str, ...]) -> Judgements:
    texts = [" ".join(text.split()) for text in asked.texts]
    holding = {
        query_id: {name: 1 for name, text in zip(asked.names, texts, strict=True) if span in text}
        for query_id, span in zip(query_ids, asked.questions, strict=True)
    }
    return {query_id: found for query_id, found in holding.items() if found}


def _make_asked(
    folder: Path, rows: list[dict[str, object]], questions: Iterable[Question]
) -> AskedSet:
    asked = list(questions)
    vectors = np.load(folder / "corpus_minilm.npy")[: len(rows)]
    question_vectors = np.load(folder / "queries_minilm.npy")[[each.row for each in asked]]
    return AskedSet(
        names=tuple(str(row["_id"]) for row in rows),
        titles=tuple(str(row["title"]) for row in rows),
        bodies=tuple(str(row["text"]) for row in rows),
        vectors=vectors.astype(np.float32),
        questions=tuple(each.text for each in asked),
        question_vectors=question_vectors.astype(np.float32),
    )
