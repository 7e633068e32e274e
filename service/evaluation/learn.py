"""Weights learnt from feedback, for a tenant and for its intents, judged on held-out questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.db.tenant_settings import apply_tenant_settings
from service.errors import InvalidInput, RegressionRefused
from service.evaluation.compare import SEED, Interval, estimate_mean
from service.evaluation.feedback import CallerJudgement, limit_shares
from service.evaluation.fusion import Floats, FusionPoint, Ints
from service.evaluation.gate import join_others, split_folds
from service.evaluation.legs import AskedLegs
from service.evaluation.tune import (
    FOLDS,
    LEAST_QUESTIONS,
    MEASURE,
    WEIGHT_PAIRS,
    current_point,
    describe_point,
    make_grid,
    score_grid,
)
from service.retrieval.intent import detect_intent
from service.retrieval.request import choose_options
from service.settings import Settings
from service.types import Intent, Json

LEAST_CALLERS = 10
MOST_FALL = 0.01
TENANT = "tenant"

OwnSettings = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Learner:
    """A tenant's settings over those of the service, and how gains are measured."""

    settings: Settings
    own: OwnSettings
    folds: int = FOLDS
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was fitted to a group of questions, and its gain on those held out while fitting."""

    group: str
    questions: int
    callers: int
    held_out_current: float
    held_out_tuned: float
    gain: Interval
    changes: OwnSettings

    @property
    def improves(self) -> bool:
        """Whether the gain on held-out questions is more than chance."""
        return self.gain.low > 0


@dataclass(frozen=True, slots=True)
class Learnt:
    """A proposal for the tenant and for each intent with enough feedback; what others lack."""

    proposals: tuple[Proposal, ...]
    left_out: Mapping[str, str]

    @property
    def settings(self) -> dict[str, Json]:
        """What is worth storing, by setting; empty where nothing is."""
        found: dict[str, Json] = {}
        for each in self.proposals:
            if each.improves:
                found.update(each.changes)
        return found


@dataclass(frozen=True, slots=True)
class Check:
    """nDCG@10 on judged questions under the settings in force and under those proposed."""

    questions: int
    current: float
    proposed: float


def learn_weights(
    asked: Mapping[str, AskedLegs], judged: Sequence[CallerJudgement], *, learner: Learner
) -> Learnt:
    """Fit weights and fusion to the tenant, then weights to each intent that has the feedback.

    asked: both legs of each judged question, by its id.
    """
    refuse_few(judged)
    whole = _fit(TENANT, asked, judged=judged, variants=_vary_tenant(learner), learner=learner)
    proposals = [whole]
    left_out: dict[str, str] = {}
    own = {**learner.own, **(whole.changes if whole.improves else {})}
    for intent, part in _split_intents(asked, judged).items():
        lack = _find_lack(part)
        if lack is not None:
            left_out[intent] = lack
            continue
        variants = _vary_intent(own, intent)
        found = _fit(intent, asked, judged=part, variants=variants, learner=learner)
        proposals.append(found)
        if found.improves:
            own.update(found.changes)
    return Learnt(tuple(proposals), left_out)


def score_variants(
    asked: Sequence[AskedLegs],
    judgements: Mapping[str, Mapping[str, float]],
    *,
    settings: Settings,
    variants: Sequence[OwnSettings],
) -> Floats:
    """nDCG@10 under each of some settings of a tenant (a row) for each question (a column)."""
    scores = np.zeros((len(variants), len(asked)))
    intents = [detect_intent(each.question.text) for each in asked]
    for intent in sorted(set(intents)):
        columns = [place for place, each in enumerate(intents) if each == intent]
        points = [find_point(settings, own, intent=intent) for own in variants]
        grid = list(dict.fromkeys(points))
        rows = score_grid([asked[place] for place in columns], judgements, grid=grid)
        scores[:, columns] = rows[[grid.index(point) for point in points]]
    return scores


def find_point(settings: Settings, own: OwnSettings, *, intent: Intent) -> FusionPoint:
    """The fusion that a question of an intent gets, by the rules of a search."""
    options = choose_options(settings, own, intent=intent)
    return FusionPoint(options.fusion, options.bm25_weight, options.vector_weight, options.rrf_k)


def check_settings(
    asked: Sequence[AskedLegs],
    judgements: Mapping[str, Mapping[str, float]],
    *,
    learner: Learner,
    changes: OwnSettings,
) -> Check:
    """Measure what was proposed on questions that somebody judged."""
    variants = [learner.own, {**learner.own, **changes}]
    scores = score_variants(asked, judgements, settings=learner.settings, variants=variants)
    current, proposed = scores.mean(axis=1)
    return Check(len(asked), float(current), float(proposed))


def refuse_unproven(learnt: Learnt, check: Check | None) -> None:
    """Raise unless something is proposed, and does no harm on the judged questions."""
    if not learnt.settings:
        whole = learnt.proposals[0]
        raise InvalidInput(
            f"Nothing is stored: the gain in {MEASURE} on held-out questions is between "
            f"{whole.gain.low:+.3f} and {whole.gain.high:+.3f}, not above 0.",
            hint="Feedback on more questions narrows the interval; --days looks further back.",
        )
    if check is not None and check.proposed < check.current - MOST_FALL:
        raise RegressionRefused(
            f"Nothing is stored: on {check.questions} judged questions {MEASURE} falls from "
            f"{check.current:.4f} to {check.proposed:.4f}, by more than {MOST_FALL}.",
            hint="Feedback and judgements disagree: tune on the judged questions, or try the "
            "settings on a share of the traffic first.",
        )


def _fit(
    group: str,
    asked: Mapping[str, AskedLegs],
    *,
    judged: Sequence[CallerJudgement],
    variants: Sequence[OwnSettings],
    learner: Learner,
) -> Proposal:
    """Fit on all questions, and measure what fitting gains on questions held out."""
    weighed = limit_shares(judged)
    columns = _Columns.of(weighed)
    legs = [_name_legs(asked[each.question_id], each) for each in weighed]
    judgements = {
        named.question.query_id: each.relevant for named, each in zip(legs, weighed, strict=True)
    }
    scores = score_variants(legs, judgements, settings=learner.settings, variants=variants)
    tuned = _score_held_out(scores, columns, learner=learner)
    chosen = variants[_choose(scores, columns, fitted=np.arange(len(weighed)))]
    middle = columns.find_middle(tuned - scores[0])
    counted = _Columns.of([weighed[place] for place in middle.tolist()])
    current, tuned = counted.average(scores[0, middle]), counted.average(tuned[middle])
    return Proposal(
        group,
        questions=columns.question_count,
        callers=len(set(columns.callers)),
        held_out_current=float(current.mean()),
        held_out_tuned=float(tuned.mean()),
        gain=estimate_mean(tuned - current, seed=learner.seed),
        changes={name: value for name, value in chosen.items() if variants[0].get(name) != value},
    )


def _score_held_out(scores: Floats, columns: _Columns, *, learner: Learner) -> Floats:
    """The score of each column with what was fitted on the folds that its question is not in."""
    tuned = np.zeros(len(columns.weights))
    parts = split_folds(columns.question_count, learner.folds, seed=learner.seed)
    for fold, part in enumerate(parts):
        choice = _choose(scores, columns, fitted=columns.find(join_others(parts, fold)))
        held_out = columns.find(part)
        tuned[held_out] = scores[choice, held_out]
    return tuned


@dataclass(frozen=True, slots=True)
class _Columns:
    """The judgements of a group as columns: question and caller by number, and the weight."""

    questions: Ints
    callers: Ints
    weights: Floats

    @classmethod
    def of(cls, judged: Sequence[CallerJudgement]) -> _Columns:
        return cls(
            np.unique([each.question_id for each in judged], return_inverse=True)[1],
            np.unique([each.caller for each in judged], return_inverse=True)[1],
            np.array([each.weight for each in judged]),
        )

    @property
    def question_count(self) -> int:
        return int(self.questions.max()) + 1

    def find(self, questions: Ints) -> Ints:
        """The columns of some questions."""
        return np.flatnonzero(np.isin(self.questions, questions))

    def find_middle(self, gains: Floats) -> Ints:
        """The columns without the caller who gains most and the one who loses most."""
        by_caller = np.bincount(self.callers, weights=gains * self.weights)
        extremes = [by_caller.argmax(), by_caller.argmin()]
        return np.flatnonzero(~np.isin(self.callers, extremes))

    def average(self, values: Floats) -> Floats:
        """A value for each question, whose mean is the weighted mean of the columns."""
        sums = np.bincount(self.questions, weights=values * self.weights)
        return np.asarray(sums * len(sums) / self.weights.sum())


def _choose(scores: Floats, columns: _Columns, *, fitted: Ints) -> int:
    """The best row; of equals the first, which is what is in force if it is among them.

    Each row is judged without the caller that speaks most for it and the one most against it:
    whatever one caller says, the others decide.
    """
    gains = (scores[:, fitted] - scores[0, fitted]) * columns.weights[fitted]
    callers = columns.callers[fitted]
    by_caller = np.stack([gains[:, callers == each].sum(axis=1) for each in np.unique(callers)])
    trimmed = by_caller.sum(axis=0) - by_caller.max(axis=0) - by_caller.min(axis=0)
    return int(np.argmax(trimmed.round(9)))


def _name_legs(asked: AskedLegs, judged: CallerJudgement) -> AskedLegs:
    """The legs under a name of their own: callers may judge one question differently."""
    name = f"{judged.question_id} {judged.caller}"
    return replace(asked, question=replace(asked.question, query_id=name))


def _vary_tenant(learner: Learner) -> list[OwnSettings]:
    """What is in force, and the tenant with each fusion stated as its own."""
    used = apply_tenant_settings(learner.settings, learner.own)
    stated = [{**learner.own, **describe_point(point)} for point in make_grid(current_point(used))]
    return [learner.own, *stated]


def _vary_intent(own: OwnSettings, intent: Intent) -> list[OwnSettings]:
    """What is in force, and the tenant with each pair of weights for one intent."""
    known = own.get("hybrid_intent_weights")
    kept = dict(known) if isinstance(known, Mapping) else {}
    stated = [
        {**own, "hybrid_intent_weights": {**kept, intent: list(pair)}} for pair in WEIGHT_PAIRS
    ]
    return [own, *stated]


def _split_intents(
    asked: Mapping[str, AskedLegs], judged: Sequence[CallerJudgement]
) -> dict[Intent, list[CallerJudgement]]:
    parts: dict[Intent, list[CallerJudgement]] = {}
    for each in judged:
        intent = detect_intent(asked[each.question_id].question.text)
        parts.setdefault(intent, []).append(each)
    return dict(sorted(parts.items()))


def _find_lack(judged: Sequence[CallerJudgement]) -> str | None:
    questions = len({each.question_id for each in judged})
    callers = len({each.caller for each in judged})
    enough = questions >= LEAST_QUESTIONS and callers >= LEAST_CALLERS
    return None if enough else f"{questions} questions of {callers} callers"


def refuse_few(judged: Sequence[CallerJudgement]) -> None:
    """Raise unless there is enough feedback to learn from."""
    lack = _find_lack(judged)
    if lack is not None:
        raise InvalidInput(
            f"There is feedback on {lack}: too little to tell a gain from chance.",
            hint=f"It takes {LEAST_QUESTIONS} questions of {LEAST_CALLERS} different callers, "
            "whose words are kept; --days looks further back.",
        )
