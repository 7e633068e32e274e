"""Evaluation: ask every question, time the steps, measure the rankings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.embedding import Embedder, FloatMatrix
from service.evaluation.beir import JudgedSet, Question
from service.evaluation.contexts import measure_contexts
from service.evaluation.metrics import average, measure_rankings, summarise_seconds
from service.evaluation.options import Retrieval
from service.evaluation.searchers import Ranking, Searcher
from service.types import Json

WARM_UP = 5

OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class EmbeddedQuestions:
    """Questions with a vector each, and the seconds each took; none where they were given."""

    questions: tuple[Question, ...]
    vectors: FloatMatrix
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one way of retrieval is worth on a set: by question, on average, and in time."""

    retrieval: Retrieval
    values: Mapping[str, Mapping[str, float]]
    latency_ms: Mapping[str, Mapping[str, float]]
    rankings: Mapping[str, tuple[str, ...]]

    @property
    def means(self) -> dict[str, float]:
        """Each measure's mean over the questions."""
        return {name: average(values) for name, values in self.values.items()}

    def to_json(self) -> dict[str, Json]:
        """Means, times and settings under the names they are printed by."""
        return {
            **{name: round(mean, 4) for name, mean in self.means.items()},
            "latency_ms": {step: dict(points) for step, points in self.latency_ms.items()},
            "mode": self.retrieval.mode,
            "settings": self.retrieval.describe(),
            "queries": len(self.rankings),
        }


def embed_questions(
    questions: Sequence[Question], embedder: Embedder, *, on_progress: OnProgress | None = None
) -> EmbeddedQuestions:
    """Embed one question after the other, as they come in service, and time each."""
    for question in questions[:WARM_UP]:
        embedder.embed_query(f"{question.text} warm-up")  # another text: equal ones are cached
    seconds, vectors = [], []
    for question in questions:
        started = time.perf_counter()
        vectors.append(embedder.embed_query(question.text))
        seconds.append(time.perf_counter() - started)
        if on_progress is not None:
            on_progress(1)
    return EmbeddedQuestions(tuple(questions), np.stack(vectors), tuple(seconds))


def evaluate(
    judged: JudgedSet,
    embedded: EmbeddedQuestions,
    *,
    searchers: Sequence[tuple[Retrieval, Searcher]],
    on_progress: OnProgress | None = None,
) -> list[Evaluation]:
    """Evaluate each searcher on the same questions, asked in turn so that times compare."""
    for _, searcher in searchers:
        for question, vector in _pairs(embedded)[:WARM_UP]:
            searcher.search(question, vector)
    found: list[dict[str, Ranking]] = [{} for _ in searchers]
    for number, (question, vector) in enumerate(_pairs(embedded)):
        # Whoever is asked second finds the pages in memory: take turns.
        order = range(len(searchers)) if number % 2 == 0 else range(len(searchers))[::-1]
        for place in order:
            found[place][question.query_id] = searchers[place][1].search(question, vector)
        if on_progress is not None:
            on_progress(1)
    return [
        _judge(judged, retrieval, rankings=rankings, embedding_seconds=embedded.seconds)
        for (retrieval, _), rankings in zip(searchers, found, strict=True)
    ]


def _pairs(embedded: EmbeddedQuestions) -> list[tuple[Question, FloatMatrix]]:
    return list(zip(embedded.questions, embedded.vectors, strict=True))


def _judge(
    judged: JudgedSet,
    retrieval: Retrieval,
    *,
    rankings: Mapping[str, Ranking],
    embedding_seconds: Sequence[float],
) -> Evaluation:
    documents = {query_id: ranking.documents for query_id, ranking in rankings.items()}
    steps: dict[str, list[float]] = {"embed": list(embedding_seconds)} if embedding_seconds else {}
    for ranking in rankings.values():
        for step, seconds in ranking.seconds.items():
            steps.setdefault(step, []).append(seconds)
    contexts = {name: each.context for name, each in rankings.items() if each.context is not None}
    packed = measure_contexts(contexts, judged.judgements) if contexts else {}
    return Evaluation(
        retrieval,
        values=measure_rankings(judged.judgements, documents) | packed,
        latency_ms={step: summarise_seconds(seconds) for step, seconds in steps.items()},
        rankings=documents,
    )
