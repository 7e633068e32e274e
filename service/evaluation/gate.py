"""The confidence gate fitted: from which similarity on a question is answered (pure)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Without questions that must be refused, the gate is only ever lowered, until it refuses no more
# than this share of those that have an answer.
REFUSED_AT_MOST = 0.05
_STEP = 0.01

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """A threshold, and the shares it refuses of answerable and of unanswerable questions."""

    threshold: float
    answerable_refused: float
    unanswerable_refused: float | None


def fit_threshold(answerable: Floats, unanswerable: Floats, *, current: float) -> float:
    """The threshold that tells both kinds apart best; the current one where it is as good."""
    if not len(unanswerable):
        wanted = float(np.quantile(answerable, REFUSED_AT_MOST, method="lower"))
        return min(current, _round_down(max(0.0, wanted)))
    grid = np.append(current, np.arange(0.0, 1.0 + _STEP / 2, _STEP).round(2))
    kept = (answerable[None, :] >= grid[:, None]).mean(axis=1)
    refused = (unanswerable[None, :] < grid[:, None]).mean(axis=1)
    return float(grid[int(np.argmax(kept + refused))])


def judge_threshold(threshold: float, answerable: Floats, *, unanswerable: Floats) -> GateOutcome:
    """What a threshold does to both kinds of questions."""
    return GateOutcome(
        threshold,
        float((answerable < threshold).mean()),
        float((unanswerable < threshold).mean()) if len(unanswerable) else None,
    )


def cross_validate_gate(
    answerable: Floats, unanswerable: Floats, *, current: float, folds: int, seed: int
) -> GateOutcome:
    """The threshold fitted on all, with what thresholds fitted on other folds refuse of each."""
    kept, other = (split_folds(len(each), folds, seed=seed) for each in (answerable, unanswerable))
    judged = []
    for fold, (left, right) in enumerate(zip(kept, other, strict=True)):
        threshold = fit_threshold(
            answerable[join_others(kept, fold)],
            unanswerable[join_others(other, fold)],
            current=current,
        )
        judged.append(
            judge_threshold(threshold, answerable[left], unanswerable=unanswerable[right])
        )
    refused = [
        each.unanswerable_refused for each in judged if each.unanswerable_refused is not None
    ]
    return GateOutcome(
        fit_threshold(answerable, unanswerable, current=current),
        float(np.mean([each.answerable_refused for each in judged])),
        float(np.mean(refused)) if refused else None,
    )


def split_folds(count: int, folds: int, *, seed: int) -> list[Ints]:
    """Places from 0 in folds of about equal size, at random."""
    shuffled = np.random.default_rng(seed).permutation(count)
    return [np.sort(part) for part in np.array_split(shuffled, folds)]


def join_others(parts: list[Ints], left_out: int) -> Ints:
    """The places of all folds but one."""
    return np.concatenate(parts[:left_out] + parts[left_out + 1 :])


def _round_down(value: float) -> float:
    return round(float(np.floor(value / _STEP + 1e-9)) * _STEP, 2)
