"""An answer without a writer: the best sentences of the context, each with its citation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from service.embedding import Embedder
from service.synthesis.check import CheckedText
from service.synthesis.citations import cite_quotes
from service.synthesis.context import Context, Source
from service.synthesis.links import deactivate_links
from service.synthesis.sentences import find_keywords, split_sentences
from service.types import Vector

MOST_SENTENCES = 4
# Embedding takes milliseconds a sentence: only those with a chance are embedded.
EMBEDDED_SENTENCES = 24
LEAST_WORDS = 4
LONGEST_SENTENCE = 600
OVERLAP_WEIGHT = 0.4
SIMILARITY_WEIGHT = 0.5
RANK_WEIGHT = 0.1
REDUNDANCY_WEIGHT = 0.5
LEAST_GAIN = 0.5

_BULLET = re.compile(r"^(?:[-*+>\u2022]|\d+[.)])\s+")
_MARK = re.compile(r"\s*\[\^?\d+\]")


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    source: Source
    place: int
    overlap: float
    rank: float


def extract_answer(
    question: str, context: Context, *, embedder: Embedder, query_vector: Vector | None = None
) -> CheckedText:
    """Return the sentences that say most about the question and repeat each other least."""
    candidates = _choose_candidates(question, context)
    if not candidates:
        return CheckedText("")
    vector = embedder.embed_query(question) if query_vector is None else query_vector
    vectors = embedder.embed_documents([each.text for each in candidates])
    relevance = np.array([_weigh(each) for each in candidates])
    relevance = relevance + SIMILARITY_WEIGHT * np.maximum(vectors @ vector, 0)
    chosen = _choose_novel(relevance, vectors @ vectors.T)
    picked = sorted((candidates[place] for place in chosen), key=_reading_order)
    text = "\n".join(f"{_show(each.text)} [{each.source.number}]" for each in picked)
    inactive = deactivate_links(text, known=text)
    citations = cite_quotes((each.source, each.text) for each in picked)
    return CheckedText(inactive.text, citations, removed_links=inactive.removed)


def _choose_candidates(question: str, context: Context) -> list[_Sentence]:
    wanted = find_keywords(question)
    sentences = [
        _Sentence(
            text,
            source,
            place,
            overlap=len(wanted & find_keywords(text)) / max(1, len(wanted)),
            rank=1 / (1 + order),
        )
        for order, source in enumerate(context.sources)
        for place, text in enumerate(split_sentences(source.text))
        if len(text.split()) >= LEAST_WORDS and len(text) <= LONGEST_SENTENCE
    ]
    if not sentences:
        sentences = [
            _Sentence(source.text[:LONGEST_SENTENCE], source, 0, overlap=0.0, rank=1 / (1 + order))
            for order, source in enumerate(context.sources)
            if source.text
        ]
    return sorted(sentences, key=_weigh, reverse=True)[:EMBEDDED_SENTENCES]


def _weigh(sentence: _Sentence) -> float:
    return OVERLAP_WEIGHT * sentence.overlap + RANK_WEIGHT * sentence.rank


def _choose_novel(relevance: Vector, similarity: Vector) -> list[int]:
    """Choose greedily by relevance less what the chosen say already; stop when little is gained."""
    chosen: list[int] = []
    gains = relevance.copy()
    while len(chosen) < min(MOST_SENTENCES, len(relevance)):
        best = int(np.argmax(gains))
        if chosen and gains[best] < LEAST_GAIN * relevance[chosen[0]]:
            break
        chosen.append(best)
        repeated = np.max(similarity[:, chosen], axis=1)
        gains = relevance - REDUNDANCY_WEIGHT * np.maximum(repeated, 0) * relevance
        gains[chosen] = -np.inf
    return chosen


def _show(sentence: str) -> str:
    """Return a sentence without its list or table marks; [7] in a document is not one of ours."""
    cells = [cell.strip() for cell in _BULLET.sub("", sentence).split("|")]
    return _MARK.sub("", "; ".join(cell for cell in cells if cell))


def _reading_order(sentence: _Sentence) -> tuple[int, int]:
    return sentence.source.number, sentence.place
