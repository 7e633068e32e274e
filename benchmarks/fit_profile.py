"""python -m benchmarks.fit_profile: fit the shipped embedder's profile, and judge it elsewhere.

Fitted on half of the questions (SciFact: its training questions), judged on the others. A question
is related to the corpus of its own set and unrelated to the others'. The sets are found at
../shared/data (see --data) with their vectors; those of SciFact's training questions are embedded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from service.embedding import DEFAULT_MODEL, FloatMatrix, load_embedder
from service.embedding.profile import GATE, measure_gate
from service.evaluation.beir import JudgedSet, Question, has_split, read_objects, read_set
from service.evaluation.profiles import (
    MOST_QUESTIONS,
    AskedQuestions,
    EmbeddedSet,
    fit_sets,
    sample_related,
    sample_unrelated,
)

SETS = ("scifact", "cisi", "hotpotqa", "squad2_dev", "spider_tables")
# Encyclopedias hold something on almost any question of general knowledge: no judgement either way.
ENCYCLOPEDIAS = {"hotpotqa", "squad2_dev"}
GENERAL = {"hotpotqa", "squad2_dev", "spider_tables"}
UNRELATED = [
    (asked, corpus)
    for corpus in SETS
    for asked in SETS
    if asked != corpus and not (corpus in ENCYCLOPEDIAS and asked in GENERAL)
]


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets.")] = Path("../shared/data"),
) -> None:
    """Fit on one half; print the points, and what the gate does to the other half."""
    missing = [name for name in SETS if not (data / name / "corpus_minilm.npy").is_file()]
    if missing:
        print(f"No evaluation sets at {data}: {', '.join(missing)}.")
        raise typer.Exit(1)
    sets = {name: load_set(data / name) for name in SETS}
    fitted = fit_sets(sets, unrelated=UNRELATED)
    held_out = {name: each.held_out for name, each in sets.items()}
    related = [each.best for each in sample_related(sets, held_out).values()]
    unrelated = list(sample_unrelated(sets, held_out, pairs=UNRELATED).values())
    totals = {
        f"gate at {gate:.3f}": asdict(measure_gate(related, unrelated, gate=gate))
        for gate in (fitted.gate, GATE)
    }
    print(json.dumps({**asdict(fitted), **totals}, indent=2))


def load_set(folder: Path) -> EmbeddedSet:
    """Read a set; its training questions are a split of their own, or every other question."""
    rows = [values for _, values in read_objects(folder / "corpus.jsonl")]
    places = {str(values["_id"]): place for place, values in enumerate(rows)}
    corpus = np.load(folder / "corpus_minilm.npy").astype(np.float32)
    asked = read_set(folder)
    vectors = np.load(folder / "queries_minilm.npy").astype(np.float32)
    if has_split(folder, "train"):
        training = read_set(folder, split="train")
        embedded = load_embedder(DEFAULT_MODEL).embed_queries(
            [question.text for question in training.questions]
        )
        return EmbeddedSet(
            corpus,
            AskedQuestions(embedded, _find_wanted(training, training.questions, places=places)),
            _take(asked, asked.questions, vectors=vectors, places=places),
        )
    halves = (
        _take(asked, asked.questions[part::2], vectors=vectors, places=places) for part in (0, 1)
    )
    return EmbeddedSet(corpus, *halves)


def _take(
    judged: JudgedSet,
    questions: Sequence[Question],
    *,
    vectors: FloatMatrix,
    places: dict[str, int],
) -> AskedQuestions:
    some = questions[:: max(1, len(questions) // MOST_QUESTIONS)][:MOST_QUESTIONS]
    rows = [question.row for question in some]
    return AskedQuestions(vectors[rows], _find_wanted(judged, some, places=places))


def _find_wanted(
    judged: JudgedSet, questions: Sequence[Question], *, places: dict[str, int]
) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(places[name] for name in judged.judgements[question.query_id] if name in places)
        for question in questions
    )


if __name__ == "__main__":
    typer.run(main)
