"""Profiles: what a cosine of one embedder means on the documented scale (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidInput

Cosines = NDArray[np.floating]

GATE = 0.5
# Where the scale has its marks: outside | adjacent | loosely related | direct match.
ADJACENT, RELATED, DIRECT, CLOSEST = 0.3, GATE, 0.7, 0.95
_LEAST_STEP = 0.01  # two marks at the same cosine would make the map a cliff


@dataclass(frozen=True, slots=True)
class Profile:
    """A monotone map from raw to calibrated cosine: linear between its points, flat beyond."""

    raw_cosines: tuple[float, ...] = ()
    calibrated_cosines: tuple[float, ...] = ()

    def calibrate(self, cosine: float) -> float:
        """Return the cosine on the calibrated scale; without points as it is."""
        if not self.raw_cosines:
            return cosine
        return float(np.interp(cosine, self.raw_cosines, self.calibrated_cosines))


@dataclass(frozen=True, slots=True)
class Sample:
    """Cosines of one set of questions: the best of each question, and of the nodes it wants."""

    best: Cosines
    wanted: Cosines


@dataclass(frozen=True, slots=True)
class GateErrors:
    """Shares of questions that a gate treats wrongly, each set counting the same."""

    refused: float
    let_through: float


def make_profile(raw_cosines: Sequence[float], calibrated_cosines: Sequence[float]) -> Profile:
    """Return the profile, or refuse points that are no monotone map of cosines."""
    hint = 'Give two lists like {"raw_cosines": [0, 0.4, 1], "calibrated_cosines": [0, 0.5, 1]}.'
    points = (np.array(raw_cosines, dtype=float), np.array(calibrated_cosines, dtype=float))
    if len(raw_cosines) != len(calibrated_cosines):
        raise InvalidInput(
            f"There are {len(raw_cosines)} raw and {len(calibrated_cosines)} calibrated cosines.",
            hint=hint,
        )
    if any(not np.isfinite(each).all() or (np.abs(each) > 1).any() for each in points):
        raise InvalidInput("A cosine is from -1 to 1.", hint=hint)
    if (np.diff(points[0]) <= 0).any() or (np.diff(points[1]) < 0).any():
        raise InvalidInput("Raw cosines must rise, and calibrated ones must not fall.", hint=hint)
    return Profile(tuple(map(float, raw_cosines)), tuple(map(float, calibrated_cosines)))


def fit_profile(related: Sequence[Sample], unrelated: Sequence[Cosines]) -> Profile:
    """Fit a profile to questions with and without an answer in what they were asked of.

    0.3 is the median best cosine of unrelated questions, 0.5 the cosine where the gate errs least,
    0.7 the median of wanted nodes and 0.95 the cosine that one in fifty of them exceeds.
    """
    gate = find_gate([each.best for each in related], unrelated)
    marks = [
        (float(np.mean([np.median(each) for each in unrelated])), ADJACENT),
        (gate, RELATED),
        (float(np.mean([np.median(each.wanted) for each in related])), DIRECT),
        (float(np.mean([np.quantile(each.wanted, 0.98) for each in related])), CLOSEST),
    ]
    raw = [0.0, *(round(cosine, 3) for cosine, _ in marks), 1.0]
    if (np.diff(raw) < _LEAST_STEP).any():
        raise InvalidInput(
            f"No profile fits these questions: the marks {raw} are too close or out of order.",
            hint="Give more questions, on subjects that are farther from one another.",
        )
    return make_profile(raw, [0.0, *(calibrated for _, calibrated in marks), 1.0])


def find_gate(related: Sequence[Cosines], unrelated: Sequence[Cosines]) -> float:
    """Return the best cosine at which a gate errs least over both kinds of questions."""
    tried = np.arange(0, 1, 0.005)
    errors = [measure_gate(related, unrelated, gate=float(gate)) for gate in tried]
    totals = np.array([each.refused + each.let_through for each in errors]).round(9)
    # Where several are as good, the middle one is the farthest from an error.
    return float(np.median(tried[totals == totals.min()]))


def measure_gate(
    related: Sequence[Cosines], unrelated: Sequence[Cosines], *, gate: float
) -> GateErrors:
    """Return how often a gate on the raw cosine refuses an answer or lets a stranger in."""
    return GateErrors(
        refused=float(np.mean([(each < gate).mean() for each in related])),
        let_through=float(np.mean([(each >= gate).mean() for each in unrelated])),
    )
