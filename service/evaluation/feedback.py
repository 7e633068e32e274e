"""Feedback as judgements: what a signal counts, and that no caller counts too much (pure)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from service.db.feedback_signals import GivenSignal
from service.types import Signal

VALUES: Mapping[Signal, int] = {"clicked": 1, "cited": 1, "helpful": 2, "answer_accepted": 2}
MOST_FOR_POSITION = 5.0
MOST_JUDGEMENTS = 20
MOST_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class CallerJudgement:
    """A question as one caller judged it: the relevant documents, and how much that counts."""

    question_id: str
    caller: str
    relevant: Mapping[str, float]
    weight: float


@dataclass(frozen=True, slots=True)
class _Vote:
    """What one caller thinks of one document as the answer to one question."""

    question_id: str
    caller: str
    document: str

    @classmethod
    def of(cls, signal: GivenSignal) -> _Vote:
        return cls(signal.question_id, signal.caller, signal.document)


def weigh_position(position: int) -> float:
    """Return 1 / propensity, at most 5: a place is taken to be looked at with 1/log2(1 + place)."""
    return min(MOST_FOR_POSITION, math.log2(1 + position))


def build_judgements(signals: Sequence[GivenSignal]) -> list[CallerJudgement]:
    """Judgements of signals that come newest first; of each caller the newest few count.

    A caller counts once for a question and document. Who found it not helpful does not count for
    it, and where those are more than who liked it, nobody does.
    """
    refused = {_Vote.of(each) for each in signals if each.signal == "not_helpful"}
    liked: dict[_Vote, float] = {}
    for each in signals:
        vote = _Vote.of(each)
        if each.signal in VALUES and vote not in refused:
            weight = VALUES[each.signal] * weigh_position(each.position)
            liked[vote] = max(weight, liked.get(vote, 0.0))
    against, in_favour = _count_callers(refused), _count_callers(liked)
    kept: dict[str, list[_Vote]] = defaultdict(list)
    for vote in liked:
        pair = (vote.question_id, vote.document)
        if in_favour[pair] >= against[pair] and len(kept[vote.caller]) < MOST_JUDGEMENTS:
            kept[vote.caller].append(vote)
    return _join_votes({vote: liked[vote] for votes in kept.values() for vote in votes})


def limit_shares(judged: Sequence[CallerJudgement]) -> list[CallerJudgement]:
    """The judgements with less weight where a caller has more than a tenth of the whole.

    Of fewer than ten callers each has the same weight.
    """
    if not judged:
        return []
    totals: dict[str, float] = defaultdict(float)
    for each in judged:
        totals[each.caller] += each.weight
    most = _find_most(sorted(totals.values()))
    return [
        replace(each, weight=each.weight * min(1.0, most / totals[each.caller])) for each in judged
    ]


def _count_callers(votes: Iterable[_Vote]) -> Counter[tuple[str, str]]:
    return Counter((vote.question_id, vote.document) for vote in votes)


def _join_votes(votes: Mapping[_Vote, float]) -> list[CallerJudgement]:
    joined: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for vote, weight in votes.items():
        joined[vote.question_id, vote.caller][vote.document] = weight
    # In one order whatever came first, so that equal feedback gives equal figures.
    return [
        CallerJudgement(question_id, caller, relevant, sum(relevant.values()))
        for (question_id, caller), relevant in sorted(joined.items())
    ]


def _find_most(totals: Sequence[float]) -> float:
    """The weight of a caller that is a tenth of all once nobody has more; totals rise."""
    for limited in range(len(totals)):
        others = totals[: len(totals) - limited]
        rest = 1 - MOST_SHARE * limited
        if rest > 0 and MOST_SHARE * sum(others) / rest >= others[-1]:
            return MOST_SHARE * sum(others) / rest
    return totals[0]
