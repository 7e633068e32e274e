"""How much a text is worth as context: its length and the question's words in it (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from service.retrieval.trace import Drop, StepResult
from service.types import Candidate

LEAST_WORDS = 20
QUALITY_THRESHOLD = 0.3
JUDGED_TYPES = frozenset({"article", "section"})
_FUNCTION_WORDS = """
    a an the this that these those
    and or but nor if then than because while although
    of in on at to for from with by about into over under between through during before after
    i me my we us our you your he him his she her it its they them their
    who whom whose which what when where why how
    is am are was were be been being have has had do does did
    will would shall should can could may might must
    not no as so such there here
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

_WORD = re.compile(r"\w+")
# Scripts that put no spaces between words: two characters are about one word.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

ScoreText = Callable[[str, str], float]


def score_text(content: str, question: str) -> float:
    """Return the quality of a text for a question, in [0, 1]; below 20 words it is 0."""
    words = len(content.split()) + len(_UNSPACED.findall(content)) // 2
    if words < LEAST_WORDS:
        return 0.0
    length = min(0.8, 0.2 + words / 200 * 0.6)
    return min(1.0, length + 0.2 * _overlap(content, question))


def filter_quality(
    candidates: Sequence[Candidate],
    *,
    question: str,
    threshold: float = QUALITY_THRESHOLD,
    score: ScoreText = score_text,
) -> StepResult:
    """Leave out sections and articles below the threshold; short kinds of nodes all stay."""
    kept: list[Candidate] = []
    drops: list[Drop] = []
    for candidate in candidates:
        judged = candidate.node.node_type in JUDGED_TYPES
        quality = score(candidate.node.content, question) if judged else 1.0
        if quality >= threshold:
            kept.append(candidate)
        else:
            reason = f"quality {quality:.3f} is below {threshold:g}"
            drops.append(Drop(candidate.node.node_id, reason))
    return StepResult(kept, tuple(drops))


def _overlap(content: str, question: str) -> float:
    """The share of the question's keywords that the text has; 0 for a question without any."""
    keywords = set(_WORD.findall(question.casefold())) - STOP_WORDS
    if not keywords:
        return 0.0
    folded = content.casefold()
    words = set(_WORD.findall(folded))
    found = sum(
        word in words or (_UNSPACED.search(word) is not None and word in folded)
        for word in keywords
    )
    return found / len(keywords)
