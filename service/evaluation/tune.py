"""Tuning: the fusion and the gate that suit a tenant, judged on questions held out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.errors import InvalidInput
from service.evaluation.beir import Judgements
from service.evaluation.compare import SEED, Interval, estimate_mean
from service.evaluation.fusion import Floats, FusionPoint, Ints, fuse_candidates
from service.evaluation.gate import (
    GateOutcome,
    cross_validate_gate,
    join_others,
    judge_threshold,
    split_folds,
)
from service.evaluation.legs import AskedLegs
from service.evaluation.searchers import rank_documents
from service.settings import Settings
from service.types import Json

MEASURE = "ndcg@10"
FOLDS = 5
LEAST_QUESTIONS = 40
# A gain of this much is worth a change of settings; a set that can neither show nor exclude it
# is too small.
WORTHWHILE = 0.05
_CUT = 10
# Keyword and vector weight.
WEIGHT_PAIRS = tuple((step / 10, (10 - step) / 10) for step in range(11))
_RANK_CONSTANTS = (10, 30, 60, 100)


@dataclass(frozen=True, slots=True)
class TuneReport:
    """What was fitted on all questions, and its gain on questions held out while fitting."""

    questions: int
    folds: int
    current: FusionPoint
    proposed: FusionPoint
    held_out_current: float
    held_out_tuned: float
    gain: Interval
    fold_choices: tuple[FusionPoint, ...]
    gate_current: GateOutcome
    gate_proposed: GateOutcome

    @property
    def improves(self) -> bool:
        """Whether the gain on held-out questions is more than chance."""
        return self.gain.low > 0

    @property
    def settings(self) -> dict[str, Json]:
        """What is worth storing, by setting; empty where nothing is."""
        chosen = describe_point(self.proposed) if self.improves else {}
        if self.gate_proposed.threshold != self.gate_current.threshold:
            chosen["context_confidence_threshold"] = self.gate_proposed.threshold
        return chosen


def current_point(settings: Settings) -> FusionPoint:
    """The fusion the settings ask for."""
    return FusionPoint(
        settings.hybrid_fusion,
        settings.hybrid_keyword_weight,
        settings.hybrid_vector_weight,
        settings.hybrid_rrf_k,
    )


def describe_point(point: FusionPoint) -> dict[str, Json]:
    """A fusion as settings."""
    return {
        "hybrid_fusion": point.fusion,
        "hybrid_keyword_weight": point.keyword_weight,
        "hybrid_vector_weight": point.vector_weight,
        "hybrid_rrf_k": point.rrf_k,
    }


def make_grid(current: FusionPoint) -> tuple[FusionPoint, ...]:
    """Every fusion that is tried, the current one first: where nothing is better it stays."""
    by_rank = [FusionPoint("rrf", *pair, k) for k in _RANK_CONSTANTS for pair in WEIGHT_PAIRS]
    by_score = [FusionPoint("convex", *pair, current.rrf_k) for pair in WEIGHT_PAIRS]
    return tuple(dict.fromkeys([current, *by_rank, *by_score]))


def score_grid(
    asked: Sequence[AskedLegs],
    judgements: Mapping[str, Mapping[str, float]],
    *,
    grid: Sequence[FusionPoint],
) -> Floats:
    """nDCG@10 of every fusion (a row) for every question (a column)."""
    return np.array(
        [
            [
                _score_fusion(each, point, relevant=judgements[each.question.query_id])
                for each in asked
            ]
            for point in grid
        ]
    )


def compute_ndcg(ranking: Sequence[str], relevant: Mapping[str, float]) -> float:
    """nDCG@10 of one ranking: gain = relevance, discount = log2(place + 1)."""
    ideal = _discount(sorted(relevant.values(), reverse=True))
    return _discount([relevant.get(document, 0) for document in ranking]) / ideal


def tune(
    asked: Sequence[AskedLegs],
    judgements: Judgements,
    *,
    settings: Settings,
    confidences: Floats,
    unanswerable: Floats,
    folds: int = FOLDS,
    seed: int = SEED,
) -> TuneReport:
    """Fit on all but one fold, judge on that one, fold by fold; then fit on all.

    Confidences are the best calibrated similarities of the questions asked, and of others that
    have no answer.
    """
    _refuse_few(len(asked), folds)
    current = current_point(settings)
    grid = make_grid(current)
    scores = score_grid(asked, judgements, grid=grid)
    parts = split_folds(len(asked), folds, seed=seed)
    choices = [_choose(scores, join_others(parts, fold)) for fold in range(folds)]
    tuned = np.empty(len(asked))
    for part, choice in zip(parts, choices, strict=True):
        tuned[part] = scores[choice, part]
    gain = estimate_mean(tuned - scores[0], seed=seed)
    _refuse_unclear(gain, len(asked))
    threshold = settings.context_confidence_threshold
    return TuneReport(
        questions=len(asked),
        folds=folds,
        current=current,
        proposed=grid[_choose(scores, np.arange(len(asked)))],
        held_out_current=float(scores[0].mean()),
        held_out_tuned=float(tuned.mean()),
        gain=gain,
        fold_choices=tuple(grid[choice] for choice in choices),
        gate_current=judge_threshold(threshold, confidences, unanswerable=unanswerable),
        gate_proposed=cross_validate_gate(
            confidences, unanswerable, current=threshold, folds=folds, seed=seed
        ),
    )


def _score_fusion(asked: AskedLegs, point: FusionPoint, *, relevant: Mapping[str, float]) -> float:
    fused = fuse_candidates(asked.candidates, point)
    named = (asked.documents[place] for place in fused.places)
    return compute_ndcg(rank_documents(named, asked.question, top_k=_CUT), relevant)


def _discount(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:_CUT]))


def _choose(scores: Floats, columns: Ints) -> int:
    """The best row; of equals the first, which is the current fusion if it is among them."""
    return int(np.argmax(scores[:, columns].mean(axis=1).round(12)))


def _refuse_few(questions: int, folds: int) -> None:
    if not 2 <= folds <= questions:
        raise InvalidInput(f"{questions} questions cannot be divided into {folds} folds.")
    if questions < LEAST_QUESTIONS:
        raise InvalidInput(
            f"{questions} judged questions are too few to tell a gain from chance.",
            hint=f"Judge at least {LEAST_QUESTIONS}; 100 to 300 show smaller gains.",
        )


def _refuse_unclear(gain: Interval, questions: int) -> None:
    """An interval from a loss to a gain worth having says nothing either way."""
    if gain.low <= 0 and gain.high >= WORTHWHILE:
        needed = math.ceil(questions * ((gain.high - gain.low) / (2 * WORTHWHILE)) ** 2)
        raise InvalidInput(
            f"{questions} judged questions are too few to tell: the gain in {MEASURE} on held-out "
            f"questions is between {gain.low:+.3f} and {gain.high:+.3f}.",
            hint=f"About {max(needed, questions + LEAST_QUESTIONS)} questions would tell whether "
            f"it reaches {WORTHWHILE}.",
        )
