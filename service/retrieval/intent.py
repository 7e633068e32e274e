"""What kind of question it is, by rules, and which weights suit it (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from service.types import Intent


@dataclass(frozen=True, slots=True)
class Preset:
    """Weights and pool that a recognised intent brings along."""

    bm25_weight: float
    vector_weight: float
    k_base: int


# Exact words matter where one thing is asked for, meaning where many may fit.
_EXACT = Preset(0.5, 0.5, 16)
_BROAD = Preset(0.3, 0.7, 12)
PRESETS: dict[Intent, Preset] = {
    "definition": _EXACT,
    "measurement": _EXACT,
    "procedure": _EXACT,
    "lookup": _EXACT,
    "exploratory": _BROAD,
}

_IDENTIFIER = re.compile(
    r"""
    \b[a-z0-9]+(?:_[a-z0-9]+)+\b              # customer_email, MAX_RESULTS
    | \b[a-zA-Z]\w*\.[a-zA-Z_]\w+(?:\.\w+)*\b # orders.customer_id
    | \b0x[0-9a-f]{2,}\b                      # 0x80070005
    | \b[A-Z]{1,6}-?\d{3,}\b                  # ORA-00942, E1234
    | \b[0-9a-f]{8}-[0-9a-f]{4}-              # the beginning of a UUID
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CAMEL_CASE = re.compile(r"\b[a-z]+[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
# In this order: "what is the difference between" is no definition, "what is the rate" neither.
_PATTERNS: dict[Intent, str] = {
    "exploratory": r"^why\b|\b(?:explain|compare|comparison|discuss|overview|versus|vs)\b"
    r"|\bdifferences? between\b|\bpros and cons\b|^tell me (?:more )?about\b"
    r"|\b(?:advantages|disadvantages|implications|consequences|trade-?offs|benefits)\b"
    r"|^how (?:does|do|did|is|are) .+ (?:affect|relate|compare|differ|influence|work)",
    "measurement": r"\bhow (?:many|much|long|far|old|tall|fast|often|big|large|heavy|deep|high)\b"
    r"|\b(?:what|which) (?:is |was |are |were )?(?:the )?"
    r"(?:number|percentage|proportion|share|rate|size|length|height|weight|width|depth"
    r"|population|price|cost|distance|speed|temperature|age|amount|duration|year|date)\b",
    "procedure": r"\bhow (?:to|do i|do we|do you|can i|can we|can you|should i|should we|would i)\b"
    r"|\b(?:steps|instructions|procedure|process) (?:to|for|of)\b",
    "definition": r"^(?:what|who)(?:'s| is| are| was| were)\b|^define\b"
    r"|\b(?:definition|meaning) of\b"
    r"|^what (?:does|do|did) .+ (?:mean|stand for)\b",
}
_RULES = {intent: re.compile(text, re.IGNORECASE) for intent, text in _PATTERNS.items()}


def detect_intent(question: str) -> Intent:
    """Return the first intent whose rule the question fits; `other` where none does."""
    text = " ".join(question.split())
    if _IDENTIFIER.search(text) or _CAMEL_CASE.search(text):
        return "lookup"
    return next((intent for intent, rule in _RULES.items() if rule.search(text)), "other")
