"""Fitting an embedder's profile: questions of several sets, asked of all their corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.embedding import Embedder, FloatMatrix, OnProgress, text_to_embed
from service.embedding.profile import (
    GATE,
    Cosines,
    Profile,
    Sample,
    fit_profile,
    measure_gate,
)
from service.errors import InvalidInput
from service.evaluation.beir import Question, read_objects, read_set

MOST_QUESTIONS = 1000  # of one set and half; more change the third decimal


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """The vectors of questions, and which documents each wants, by their rows."""

    vectors: FloatMatrix
    wanted: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class EmbeddedSet:
    """A corpus, questions to fit on, and others to judge the fit by."""

    corpus: FloatMatrix
    training: AskedQuestions
    held_out: AskedQuestions


@dataclass(frozen=True, slots=True)
class FittedProfile:
    """A profile, the raw cosine its gate stands at, and how the gate does on held-out questions.

    refused: the share of a set's questions that the gate turns away. let_through: by asked set and
    corpus, the share of questions without an answer there that it lets in.
    """

    profile: Profile
    gate: float
    refused: Mapping[str, float]
    let_through: Mapping[str, float]


def fit_sets(
    sets: Mapping[str, EmbeddedSet], *, unrelated: Sequence[tuple[str, str]] | None = None
) -> FittedProfile:
    """Fit on the training questions and judge on the others.

    unrelated are the pairs (asked set, corpus) without answers; all pairs unless told.
    """
    pairs = [(a, b) for b in sets for a in sets if a != b] if unrelated is None else unrelated
    if not pairs:
        raise InvalidInput(
            "A profile is fitted to two sets or more.",
            hint="The questions of one are those that the other cannot answer.",
        )
    training = {name: each.training for name, each in sets.items()}
    held_out = {name: each.held_out for name, each in sets.items()}
    profile = fit_profile(
        list(sample_related(sets, training).values()),
        list(sample_unrelated(sets, training, pairs=pairs).values()),
    )
    return _judge(
        profile,
        {name: each.best for name, each in sample_related(sets, held_out).items()},
        sample_unrelated(sets, held_out, pairs=pairs),
    )


def sample_related(
    sets: Mapping[str, EmbeddedSet], asked: Mapping[str, AskedQuestions]
) -> dict[str, Sample]:
    """Return the cosines of each set's questions with its own corpus."""
    return {name: _sample(asked[name], sets[name].corpus) for name in sets}


def sample_unrelated(
    sets: Mapping[str, EmbeddedSet],
    asked: Mapping[str, AskedQuestions],
    *,
    pairs: Sequence[tuple[str, str]],
) -> dict[str, Cosines]:
    """Return the best cosine of each question of a set with the corpus of another."""
    return {
        f"{name} of {corpus}": (asked[name].vectors @ sets[corpus].corpus.T).max(axis=1)
        for name, corpus in pairs
    }


def embed_folder(
    folder: Path, embedder: Embedder, *, on_progress: OnProgress | None = None
) -> EmbeddedSet:
    """Read a BEIR folder and embed it; every other question is kept for judging."""
    judged = read_set(folder)
    rows = [values for _, values in read_objects(judged.corpus)]
    places = {str(values.get("_id")): place for place, values in enumerate(rows)}
    texts = [
        text_to_embed(str(values.get("title") or ""), None, str(values.get("text") or ""))
        for values in rows
    ]
    corpus = embedder.embed_documents(texts, on_progress)

    def embed(questions: Sequence[Question]) -> AskedQuestions:
        wanted = [
            tuple(places[each] for each in judged.judgements[question.query_id] if each in places)
            for question in questions
        ]
        vectors = embedder.embed_queries([question.text for question in questions])
        return AskedQuestions(vectors, tuple(wanted))

    if len(judged.questions) < 2:
        raise InvalidInput(f"{folder}: one question is too few to fit on one and judge by another.")
    halves = (judged.questions[part::2][:MOST_QUESTIONS] for part in (0, 1))
    return EmbeddedSet(corpus, *map(embed, halves))


def _sample(asked: AskedQuestions, corpus: FloatMatrix) -> Sample:
    cosines = asked.vectors @ corpus.T
    wanted = [cosines[row, place] for row, places in enumerate(asked.wanted) for place in places]
    return Sample(cosines.max(axis=1), np.array(wanted))


def _judge(
    profile: Profile, related: Mapping[str, Cosines], unrelated: Mapping[str, Cosines]
) -> FittedProfile:
    gate = float(np.interp(GATE, profile.calibrated_cosines, profile.raw_cosines))
    return FittedProfile(
        profile,
        gate,
        refused={
            name: measure_gate([best], [best], gate=gate).refused for name, best in related.items()
        },
        let_through={
            name: measure_gate([best], [best], gate=gate).let_through
            for name, best in unrelated.items()
        },
    )
