"""Whether a text looks like an answer: the question's words close together, in the form it asks.

The form is a date for "when", a number for "how many", a name for "who" or "where", a definition
for "what is", a list for "how to". Nothing here knows the answer; it is a bonus, not a verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

# The question's words must stand within so many characters: about a long sentence.
REACH = 240
# A text without the form that was asked for is still as good as this share of one with it.
WITHOUT_FORM = 0.7
HEADER_SHARE = 0.1
_MOST_PLACES = 8
_LONGEST_ENDING = 4

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TERM = re.compile(rf"[{_CJK}]{{1,2}}|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_BEFORE_WORDS = '\n("-/'
_ENDINGS = ("ing", "ed", "es", "ly", "s")
_FUNCTION_WORDS = """
    a about an and any are as at be been being by can could did do does for from had has have he
    her his how if in into is it its kind many may me much name no not of on or our she should
    than that the their them then there these they this those to type us was we were what when
    where which who whom whose why will with would you your
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_UNITS = (
    "percent|per cent|million|billion|thousand|dollars?|euros?|pounds?|years?|months?|weeks?|"
    "days?|hours?|minutes?|seconds?|ms|kg|g|km|m|cm|mm|miles?|feet|foot|inch(?:es)?|tons?|GB|MB|"
    "KB|people|times"
)
FORMS = {
    "date": re.compile(
        rf"\b(?:1\d{{3}}|20\d\d)\b|\b(?:{_MONTHS})\b|\bcentur(?:y|ies)\b|\d{{1,2}}[./-]\d{{1,2}}[./-]"
    ),
    "number": re.compile(
        rf"[$€£]\s?\d|\d\s?(?:%|°|(?:{_UNITS})\b)|\b\d[\d,.]*\b|"
        r"\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)\b"
    ),
    "name": re.compile(r"(?<=[a-z,;)] )[A-Z][\w'-]+"),
    "definition": re.compile(
        r"\b(?:is|are|was|were) (?:an?|the|any|one)\b|\b(?:means|refers to|is called|is defined)\b"
    ),
    "list": re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s|\b(?:[Ff]irst|[Tt]hen|[Nn]ext|[Ff]inally)\b"),
}
_ASKS_FOR = (
    ("date", re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade)\b")),
    (
        "number",
        re.compile(r"\bhow (?:many|much|long|old|far|high|large|big|tall|fast|often)\b|\bpercent"),
    ),
    ("name", re.compile(r"\bwho(?:m|se)?\b|\bwhere\b|\b(?:what|which) (?:person|country|city)\b")),
    ("list", re.compile(r"\bhow (?:to|do i|do you|can i)\b|\bsteps?\b|\blist\b")),
    ("definition", re.compile(r"\bdefin|\bmeaning of\b|^what (?:is|are) (?:an? )?\w+\??$")),
)


@dataclass(frozen=True, slots=True)
class Term:
    """A word without its ending, as it is sought; anywhere where a script has no spaces."""

    sought: str
    anywhere: bool


@dataclass(frozen=True, slots=True)
class Question:
    """The words a question is about, and the form its answer has, where that is known."""

    terms: tuple[Term, ...] = ()
    form: str | None = None


@dataclass(frozen=True, slots=True)
class Answerability:
    """How much a text looks like the answer, in [0, 1], with its parts.

    start and end are the span of the text where the question's words stand closest.
    """

    strength: float = 0.0
    agreement: float = 0.0
    form: str | None = None
    header_match: float = 0.0
    start: int = 0
    end: int = 0


def read_question(text: str) -> Question:
    """Find out what a question is about and what kind of answer it asks for."""
    lowered = " ".join(text.lower().split())
    words = [word for word in _TERM.findall(lowered) if word not in _STOP_WORDS]
    form = next((form for form, asks in _ASKS_FOR if asks.search(lowered)), None)
    terms = dict.fromkeys(_cut_ending(word) for word in words)
    return Question(tuple(_make_term(each) for each in terms), form)


def _make_term(word: str) -> Term:
    return Term(word, anywhere=True) if _IS_CJK.match(word) else Term(f" {word}", anywhere=False)


def measure_answerability(
    question: Question, bodies: Sequence[str], *, headings: Sequence[str]
) -> list[Answerability]:
    """Judge all texts together: words that most of them have weigh little."""
    if not question.terms:
        return [_judge_form_alone(body) for body in bodies]
    found = [_find_terms(question.terms, body) for body in bodies]
    weights = _weigh_terms(question.terms, found)
    matches = {heading: _match_heading(question, heading, weights) for heading in set(headings)}
    return [
        _judge(question, body, places=places, weights=weights, in_heading=matches[heading])
        for body, heading, places in zip(bodies, headings, found, strict=True)
    ]


def _judge_form_alone(body: str) -> Answerability:
    """Without a question: how many of the forms that answers take the text has."""
    forms = [name for name, form in FORMS.items() if form.search(body)]
    return Answerability(len(forms) / len(FORMS), form=", ".join(forms) or None)


def _match_heading(question: Question, heading: str, weights: Sequence[float]) -> float:
    """The weight of the terms that the heading has."""
    found = {number for _, number in _find_terms(question.terms, heading)}
    return sum(weights[number] for number in sorted(found))


def _judge(
    question: Question,
    body: str,
    *,
    places: Sequence[tuple[int, int]],
    weights: Sequence[float],
    in_heading: float,
) -> Answerability:
    agreement, start, end = _find_closest(places, weights)
    wanted = FORMS[question.form] if question.form else None
    around = body[max(0, start - REACH // 2) : end + REACH // 2]
    form = question.form if wanted and agreement and wanted.search(around) else None
    share = 1.0 if wanted is None or form else WITHOUT_FORM
    strength = (1 - HEADER_SHARE) * agreement * share + HEADER_SHARE * in_heading
    return Answerability(strength, agreement, form, in_heading, start, end)


def _cut_ending(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _find_terms(terms: Sequence[Term], text: str) -> list[tuple[int, int]]:
    """Where each term stands, as (place, number of the term), in order of place."""
    # A space in front of every word, so that a word is found by its beginning.
    spaced = f" {text.lower()}"
    for mark in _BEFORE_WORDS:  # twice as fast as str.translate
        spaced = spaced.replace(mark, " ")
    places = [
        (place, number)
        for number, term in enumerate(terms)
        if term.sought in spaced
        for place in _find_words(term, spaced)
    ]
    places.sort()
    return places


def _find_words(term: Term, spaced: str) -> list[int]:
    """Where words stand that begin with the term and have only an ending more."""
    places: list[int] = []
    at, size = spaced.find(term.sought), len(term.sought)
    while at >= 0 and len(places) < _MOST_PLACES:
        rest = spaced[at + size : at + size + _LONGEST_ENDING]
        if term.anywhere or len(rest) < _LONGEST_ENDING or not rest.isalpha():
            places.append(at)
        at = spaced.find(term.sought, at + size)
    return places


def _weigh_terms(terms: Sequence[Term], found: Sequence[list[tuple[int, int]]]) -> list[float]:
    """Rare words weigh more; the weights of the words that occur at all sum to one."""
    frequency = [0] * len(terms)
    for places in found:
        for number in {number for _, number in places}:
            frequency[number] += 1
    raw = [math.log(1 + len(found) / count) if count else 0.0 for count in frequency]
    return [weight / (sum(raw) or 1) for weight in raw]


def _find_closest(
    places: Sequence[tuple[int, int]], weights: Sequence[float]
) -> tuple[float, int, int]:
    """The most weight of different terms within reach of each other, and where that is."""
    best = (0.0, 0, 0)
    inside = [0] * len(weights)
    first, weight = 0, 0.0
    for place, number in places:
        weight += 0.0 if inside[number] else weights[number]
        inside[number] += 1
        while place - places[first][0] > REACH:
            left = places[first][1]
            inside[left] -= 1
            weight -= 0.0 if inside[left] else weights[left]
            first += 1
        if weight > best[0]:
            best = (weight, places[first][0], place)
    return best
