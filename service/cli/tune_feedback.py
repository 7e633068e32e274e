"""contextforge tune --from-feedback: weights fitted to what a tenant's callers liked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from service.cli.evaluating import SetOptions, embed_set, open_set, refuse_other_embedder
from service.cli.ingesting import show_progress
from service.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from service.db.feedback_signals import GivenSignal
    from service.evaluation.learn import Check, Learner, Learnt, Proposal
    from service.evaluation.legs import AskedLegs
    from service.settings import Settings
    from service.types import Json


@dataclass(frozen=True, slots=True)
class FeedbackTuning:
    """What to learn from, and what to do with it; check: a folder of judged questions."""

    tenant: str
    days: int
    check: Path | None
    split: str | None
    apply: bool
    folds: int
    seed: int


def tune_from_feedback(asked: FeedbackTuning, *, as_json: bool) -> None:
    """Propose weights, check them, store them if told to, and print what was found."""
    from service.db.database import open_database
    from service.settings import load_settings

    settings = load_settings()
    with open_database(settings) as database:
        learner = _read_learner(asked, settings, engine=database.engine)
        learnt = _learn(asked, learner, engine=database.engine)
        check = _check(asked, learner, learnt=learnt)
        if asked.apply:
            _store(asked, learnt, check=check, engine=database.engine)
    if as_json:
        print_json(_describe(asked, learnt, check=check))
        return
    _print(asked, learnt, check=check)


def _read_learner(asked: FeedbackTuning, settings: Settings, *, engine: Engine) -> Learner:
    from service.db.engine import tenant_transaction
    from service.db.tenant_settings import read_tenant_settings
    from service.evaluation.learn import Learner

    with tenant_transaction(engine, [asked.tenant]) as connection:
        own = read_tenant_settings(connection, asked.tenant)
    return Learner(settings, own, folds=asked.folds, seed=asked.seed)


def _learn(asked: FeedbackTuning, learner: Learner, *, engine: Engine) -> Learnt:
    from service.db.engine import tenant_transaction
    from service.db.feedback_signals import read_signals
    from service.evaluation.feedback import build_judgements
    from service.evaluation.learn import learn_weights, refuse_few

    with tenant_transaction(engine, [asked.tenant]) as connection:
        within = timedelta(days=asked.days)
        signals = read_signals(connection, asked.tenant, within=within)
    judged = build_judgements(signals)
    refuse_few(judged)
    kept = {each.question_id for each in judged}
    signals = [each for each in signals if each.question_id in kept]
    legs = _ask(asked, signals, settings=learner.settings, engine=engine)
    return learn_weights(legs, judged, learner=learner)


def _ask(
    asked: FeedbackTuning, signals: Sequence[GivenSignal], *, settings: Settings, engine: Engine
) -> dict[str, AskedLegs]:
    """Both legs of every question there is a signal on, by its id."""
    from service.db.engine import tenant_transaction
    from service.db.evaluation import read_embedder_version
    from service.embedding import load_embedder
    from service.evaluation.beir import Question
    from service.evaluation.evaluate import embed_questions
    from service.evaluation.legs import read_legs
    from service.evaluation.options import LEAST_DEPTH
    from service.evaluation.searchers import Collection

    embedder = load_embedder(settings.embedding_model)
    with tenant_transaction(engine, [asked.tenant]) as connection:
        version = read_embedder_version(connection, asked.tenant)
    refuse_other_embedder(asked.tenant, version, embedder=embedder)
    named = {each.question_id: each for each in signals}
    questions = [
        Question(name, named[name].question, row, dataset=named[name].dataset_name)
        for row, name in enumerate(sorted(named))
    ]
    with show_progress("embed", total=len(questions)) as on_progress:
        embedded = embed_questions(questions, embedder, on_progress=on_progress)
    with show_progress("search", total=len(questions)) as on_progress:
        read = read_legs(
            Collection(engine, asked.tenant), embedded, depth=LEAST_DEPTH, on_progress=on_progress
        )
    return {each.question.query_id: each for each in read}


def _check(asked: FeedbackTuning, learner: Learner, *, learnt: Learnt) -> Check | None:
    """The proposal on the judged questions of a folder, asked of the tenant itself."""
    from service.evaluation.beir import DEFAULT_SPLIT
    from service.evaluation.learn import check_settings
    from service.evaluation.legs import read_legs
    from service.evaluation.options import LEAST_DEPTH

    if asked.check is None:
        return None
    options = SetOptions(
        asked.check, asked.split or DEFAULT_SPLIT, tenant=asked.tenant, guarded=False
    )
    with open_set(options) as opened:
        embedded = embed_set(opened, {"hybrid"})
        with show_progress("check", total=len(embedded.questions)) as on_progress:
            read = read_legs(
                opened.collection, embedded, depth=LEAST_DEPTH, on_progress=on_progress
            )
        judgements = opened.source.judged.judgements
    return check_settings(read, judgements, learner=learner, changes=learnt.settings)


def _store(asked: FeedbackTuning, learnt: Learnt, *, check: Check | None, engine: Engine) -> None:
    from service.db.engine import tenant_transaction
    from service.db.tenant_settings import read_tenant_settings, write_tenant_settings
    from service.evaluation.learn import refuse_unproven

    refuse_unproven(learnt, check)
    with tenant_transaction(engine, [asked.tenant]) as connection:
        whole = {**read_tenant_settings(connection, asked.tenant), **learnt.settings}
        write_tenant_settings(connection, asked.tenant, settings=whole)


def _describe(asked: FeedbackTuning, learnt: Learnt, *, check: Check | None) -> dict[str, Json]:
    from service.evaluation.tune import MEASURE

    return {
        "measure": MEASURE,
        "tenant": asked.tenant,
        "days": asked.days,
        "proposals": [_describe_proposal(each) for each in learnt.proposals],
        "left_out": dict(learnt.left_out),
        "check": None
        if check is None
        else {
            "queries": check.questions,
            "current": round(check.current, 4),
            "proposed": round(check.proposed, 4),
        },
        "settings": learnt.settings,
        "applied": learnt.settings if asked.apply else {},
    }


def _describe_proposal(proposal: Proposal) -> dict[str, Json]:
    gain = proposal.gain
    return {
        "group": proposal.group,
        "queries": proposal.questions,
        "callers": proposal.callers,
        "held_out": {
            "current": round(proposal.held_out_current, 4),
            "tuned": round(proposal.held_out_tuned, 4),
            "gain": round(gain.mean, 4),
            "low": round(gain.low, 4),
            "high": round(gain.high, 4),
            "p_value": round(gain.p_value, 4),
        },
        "improves": proposal.improves,
        "changes": dict(proposal.changes),
    }


def _print(asked: FeedbackTuning, learnt: Learnt, *, check: Check | None) -> None:
    from service.evaluation.tune import MEASURE

    for each in learnt.proposals:
        gain = each.gain
        typer.echo(
            f"{each.group}: {each.questions} questions of {each.callers} callers; {MEASURE} on "
            f"held-out questions: {each.held_out_current:.4f} now, {each.held_out_tuned:.4f} tuned,"
            f" gain {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}], p = {gain.p_value:.4f}."
        )
        kept = "" if each.improves else " (the gain cannot be told from chance)"
        typer.echo(f"  {_show(each.changes) or 'nothing better was found'}{kept}")
    for group, lack in learnt.left_out.items():
        typer.echo(f"{group}: too little feedback, {lack}.")
    if check is not None:
        typer.echo(
            f"Check on {check.questions} judged questions: {check.current:.4f} now, "
            f"{check.proposed:.4f} as proposed."
        )
    if asked.apply:
        typer.echo(f"Stored for {asked.tenant}: {_show(learnt.settings)}")


def _show(settings: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
