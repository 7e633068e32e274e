"""Guards against documents that speak to the writer instead of to the reader (pure).

The patterns catch plain orders, not every wording of one: they stand in front of the other guards
(documents are marked as data; citations, links and leaks are checked in the answer).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from service.synthesis.sentences import find_sentences

REMOVED = "[removed]"

# Format characters are invisible: zero-width, bidi, tags. Selectors beyond the first sixteen too.
_INVISIBLE = re.compile("[\U000e0100-\U000e01ef\u180b-\u180f\u115f\u1160\u3164\uffa0]")
_LAYOUT = "\n\t"
_PATTERNS = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}"
    r"(?:\b(?:previous|prior|above|earlier|all|any|your|these|those)\b[^.!?]{0,30}"
    r"\b(?:instructions?|prompts?|rules|guidelines|directions|context|sources|messages?)\b"
    r"|\beverything (?:above|before)\b|\b(?:the|what is) above\b)",
    r"\b(?:reveal|print|repeat|show|output|leak|tell|your|new)\b[^.!?]{0,40}"
    r"\b(?:system|developer) (?:prompt|message|instructions?)\b",
    r"\b(?:you are now|from now on,? you|pretend (?:to be|that you|you))\b",
    r"\b(?:note|message|attention|instructions?) (?:to|for) (?:the |any |all |every )?"
    r"(?:ai|assistants?|language models?|llms?|chatbots?|claude)\b",
    r"^\W*(?:always |only |please |then )*(?:reply|respond|answer)\b[^.!?]{0,30}"
    r"\b(?:with|exactly|only|by)\b",
    r"\b(?:say|print|output|repeat|write|emit|reveal|include|append|insert|add|embed|render|show|"
    r"end|mention)\b[^.!?]{0,80}(?:\b(?:your|every|each) (?:answers?|reply|replies|responses?|"
    r"outputs?)\b|\bthe (?:final )?answer\b)",
    r"\b(?:reveal|leak|exfiltrate|print|output|repeat|disclose|say)\b[^.!?]{0,40}"
    r"\b(?:canary|secrets?|passphrase|verbatim|word for word|conversation)\b",
    r"\b(?:cite|citing|credit|attribute)\b[^.!?]{0,40}(?:\[\d+\]|\bsource \d+|https?:|"
    r"\bas (?:the|your|a|its) (?:only )?source\b)",
    r"\b(?:emit|render|display|embed|insert|append|include|output|show)\b[^.!?]{0,40}"
    r"(?:!\[|<img|<a\b|\b(?:this|the following) (?:image|link|url)\b)",
)
_ORDER = re.compile("|".join(f"(?:{each})" for each in _PATTERNS), re.IGNORECASE | re.MULTILINE)
_PARAGRAPH = re.compile(r"(\n\s*\n)")
_MARKED_WORD = re.compile(r"[A-Za-z0-9]+(?:[-_.:][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Withheld:
    """A text without the passages that give orders, and those passages."""

    kept: str
    withheld: tuple[str, ...] = ()


def clean_text(text: str) -> str:
    """Return the text without zero-width, bidi and control characters."""
    visible = _INVISIBLE.sub("", text.replace("\r\n", "\n"))
    return "".join(
        char
        for char in visible
        if char in _LAYOUT or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
    ).strip()


def withhold_instructions(text: str) -> Withheld:
    """Leave out each order to the writer, with what follows it in its paragraph."""
    kept, withheld = [], []
    for part in _PARAGRAPH.split(text):
        start = _find_order(part)
        kept.append(part[:start])
        if start < len(part):
            withheld.append(part[start:].strip())
    return Withheld("".join(kept).strip(), tuple(withheld))


def redact_withheld(text: str, withheld: Iterable[str], *, known: str) -> tuple[str, int]:
    """Take out words that are known from withheld passages alone; also say how many."""
    folded = known.casefold()
    words = {
        word for passage in withheld for word in _MARKED_WORD.findall(passage) if _is_marked(word)
    }
    unknown = sorted((word for word in words if word.casefold() not in folded), key=len)
    removed = 0
    for word in reversed(unknown):
        text, count = re.subn(
            rf"(?<!\w){re.escape(word)}(?!\w)", REMOVED, text, flags=re.IGNORECASE
        )
        removed += count
    return text, removed


def _find_order(paragraph: str) -> int:
    """Return where the first sentence that is an order begins; the end if there is none."""
    spans = find_sentences(paragraph)
    # On one line, so that an order cannot hide behind a line end.
    orders = (start for start, end in spans if _ORDER.search(_fold(paragraph[start:end])))
    return next(orders, len(paragraph))


def _fold(sentence: str) -> str:
    return " ".join(sentence.split())


def _is_marked(word: str) -> bool:
    """Tell a code or a name from an ordinary word."""
    return len(word) >= 4 and (any(char.isdigit() for char in word) or word[1:] != word[1:].lower())
