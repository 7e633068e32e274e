"""What is let through of an answer: nothing leaked, no foreign citation, no active link (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from service.errors import LlmUnavailable
from service.synthesis.citations import Citation, check_citations
from service.synthesis.context import Context
from service.synthesis.hostile import clean_text, redact_withheld
from service.synthesis.links import deactivate_links
from service.synthesis.prompt import Prompt, repeats_rules

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+|\n+")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text that may be shown, and what was taken out of it."""

    text: str
    citations: tuple[Citation, ...] = ()
    removed_citations: int = 0
    removed_links: int = 0
    removed_words: int = 0


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks the answer to one prompt, whole or piece by piece."""

    question: str
    context: Context
    prompt: Prompt

    def check(self, text: str) -> CheckedText:
        """Return what may be shown; LlmUnavailable where the answer gives its prompt away."""
        text = clean_text(text)
        if repeats_rules(text, self.prompt):
            raise discard("Claude's answer repeats its instructions and was discarded.")
        known = self._known()
        linked = deactivate_links(text, known=known)
        redacted, words = redact_withheld(linked.text, self.context.withheld, known=known)
        cited = check_citations(redacted, self.context)
        return CheckedText(cited.text, cited.citations, cited.removed, linked.removed, words)

    def _known(self) -> str:
        parts = [self.question]
        for source in self.context.sources:
            parts += [source.title, source.header or "", source.text]
        return "\n".join(parts)


def discard(message: str) -> LlmUnavailable:
    """Return the error for an answer that came and may not be shown."""
    error = LlmUnavailable(message)
    error.calls = 1
    return error


def cut_pieces(deltas: Iterable[str]) -> Iterable[str]:
    """Yield a streamed text in pieces that can be checked alone: whole sentences and lines."""
    waiting = ""
    for delta in deltas:
        waiting += delta
        end = _find_cut(waiting)
        if end:
            yield waiting[:end]
            waiting = waiting[end:]
    if waiting:
        yield waiting


def _find_cut(text: str) -> int:
    """Return the last place where a sentence has ended and nothing is left open."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return next((end for end in reversed(ends) if _is_closed(text[:end])), 0)


def _is_closed(text: str) -> bool:
    pairs = (("[", "]"), ("(", ")"), ("<", ">"))
    return text.count("`") % 2 == 0 and all(
        text.count(opening) <= text.count(closing) for opening, closing in pairs
    )
