"""Leak guard: a question must not find itself, with its answer, among the few-shot examples."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from service.errors import LeakedQuestions

_NO_WORD = re.compile(r"[\W_]+")
_SHOWN = 3


def fold_question(question: str) -> str:
    """The question as it is compared: without case, punctuation and spacing."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    return _NO_WORD.sub(" ", folded).strip()


def find_leaks(questions: Iterable[str], examples: Iterable[str]) -> list[str]:
    """The questions that are among the examples, in order; one without a word is none."""
    known = {fold_question(example) for example in examples} - {""}
    return [question for question in questions if fold_question(question) in known]


def refuse_leaks(questions: Iterable[str], examples: Iterable[str], *, source: str) -> None:
    """Raise LeakedQuestions where any of the questions is among the examples of the source."""
    leaks = find_leaks(questions, examples)
    if not leaks:
        return
    shown = "; ".join(f'"{leak}"' for leak in leaks[:_SHOWN])
    more = "; ..." if len(leaks) > _SHOWN else ""
    raise LeakedQuestions(
        f"{len(leaks)} of the questions are among the few-shot examples of {source}: {shown}{more}",
        hint="Their answers would be in the prompt. Take them out of the examples or of the set.",
    )
