"""Figures of a packed context: its cost, what it repeats, what it should not hold (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.packing import Pack
from service.retrieval.quality import QUALITY_THRESHOLD, score_text
from service.tokens import count_tokens

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class PackedContext:
    """What was packed for a question: the documents in it, and figures that need no judgements.

    redundancy: tokens of the context over tokens of its different sentences; its headings count
    once, in the first. garbage: share of blocks that are worth nothing for the question or repeat
    an earlier one.
    """

    documents: tuple[str, ...]
    tokens: int
    redundancy: float
    garbage: float


EMPTY = PackedContext((), 0, 1.0, 0.0)


def describe_pack(packed: Pack, *, question: str, documents: Sequence[str]) -> PackedContext:
    """Return the figures of a context; documents are those of its nodes."""
    bodies = [block.body for block in packed.blocks]
    return PackedContext(
        tuple(dict.fromkeys(documents)),
        packed.tokens,
        measure_redundancy(packed.text, bodies),
        _measure_garbage(bodies, question),
    )


def measure_redundancy(text: str, bodies: Sequence[str]) -> float:
    """Tokens of a text over those of the different sentences of its sources."""
    sentences = (sentence for body in bodies for sentence in _SENTENCE_END.split(body))
    distinct = {normalise(sentence): sentence for sentence in sentences}
    return count_tokens(text) / max(1, count_tokens(" ".join(distinct.values())))


def measure_contexts(
    contexts: Mapping[str, PackedContext], judgements: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    """Each figure for each question; answer recall is the share of its relevant documents."""
    return {
        "answer_recall@budget": {
            query_id: _share_found(context.documents, judgements[query_id])
            for query_id, context in contexts.items()
        },
        "redundancy": {name: each.redundancy for name, each in contexts.items()},
        "garbage": {name: each.garbage for name, each in contexts.items()},
        "context_tokens": {name: float(each.tokens) for name, each in contexts.items()},
    }


def normalise(text: str) -> str:
    """Lower case, one space between words."""
    return " ".join(text.lower().split())


def _share_found(documents: Sequence[str], relevant: Mapping[str, int]) -> float:
    wanted = {document for document, grade in relevant.items() if grade > 0}
    return len(wanted.intersection(documents)) / max(1, len(wanted))


def _measure_garbage(bodies: Sequence[str], question: str) -> float:
    seen: set[str] = set()
    garbage = 0
    for body in bodies:
        text = normalise(body)
        garbage += text in seen or score_text(body, question) < QUALITY_THRESHOLD
        seen.add(text)
    return garbage / max(1, len(bodies))
