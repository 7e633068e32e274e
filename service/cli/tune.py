"""contextforge tune: settings fitted to a tenant on judged questions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.evaluating import (
    DatasetOption,
    EmbeddingsOption,
    KeepOption,
    LangOption,
    OpenSet,
    SeedOption,
    SetOptions,
    TenantOption,
    embed_set,
    open_set,
)
from service.cli.ingesting import show_progress
from service.cli.output import AsJson, print_json
from service.cli.tune_feedback import FeedbackTuning, tune_from_feedback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.evaluation.fusion import Floats
    from service.evaluation.gate import GateOutcome
    from service.evaluation.tune import TuneReport
    from service.types import Json


def tune(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="A BEIR folder; not with --from-feedback or --undo."),
    ] = None,
    *,
    tenant: TenantOption = None,
    dataset: DatasetOption = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Which judgements; train where there are some.")
    ] = None,
    unanswerable: Annotated[
        Path | None,
        typer.Option("--unanswerable", help="Questions the gate should refuse (JSON, JSON Lines)."),
    ] = None,
    from_feedback: Annotated[
        bool,
        typer.Option("--from-feedback", help="Fit weights to what the tenant's callers liked."),
    ] = False,
    days: Annotated[
        int, typer.Option("--days", min=1, max=3650, help="How old feedback may be.")
    ] = 30,
    check: Annotated[
        Path | None,
        typer.Option("--check", help="A BEIR folder on which nDCG@10 must not fall."),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts held out in turn.")] = 5,
    apply: Annotated[
        bool, typer.Option("--apply", help="Store what was found as the tenant's settings.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the tenant's settings of before.")
    ] = False,
    embeddings: EmbeddingsOption = None,
    keep: KeepOption = False,
    lang: LangOption = "en",
    seed: SeedOption = 20,
    as_json: AsJson = False,
) -> None:
    """Fit weights, fusion and gate to judged questions; the gain is measured on held-out ones."""
    if (apply or undo or from_feedback) and tenant is None:
        raise typer.BadParameter("--apply, --undo and --from-feedback need --tenant.")
    if undo and tenant is not None:
        _undo(tenant, as_json=as_json)
        return
    if from_feedback and tenant is not None:
        if path or unanswerable or embeddings or dataset:
            raise typer.BadParameter(
                "--from-feedback takes no PATH, --unanswerable, --embeddings or --dataset."
            )
        asked = FeedbackTuning(tenant, days, check, split, apply=apply, folds=folds, seed=seed)
        tune_from_feedback(asked, as_json=as_json)
        return
    if path is None:
        raise typer.BadParameter("give a PATH, --from-feedback or --undo.")
    if check is not None:
        raise typer.BadParameter("--check goes with --from-feedback.")
    chosen = split or _choose_split(path)
    options = SetOptions(
        path,
        chosen,
        tenant=tenant,
        dataset=dataset,
        embeddings=embeddings,
        keep=keep,
        lang=lang,
        guarded=False,
    )
    with open_set(options) as opened:
        report = _tune(opened, unanswerable, folds=folds, seed=seed)
        applied = _apply(opened, report) if apply else {}
    if as_json:
        print_json({**_to_json(report), "split": chosen, "applied": applied})
        return
    _print_report(report)
    if apply:
        typer.echo(f"Stored for {tenant}: {_show(applied)}" if applied else "Nothing to store.")


def _choose_split(path: Path) -> str:
    from service.evaluation.beir import DEFAULT_SPLIT, has_split

    return "train" if has_split(path, "train") else DEFAULT_SPLIT


def _tune(opened: OpenSet, unanswerable: Path | None, *, folds: int, seed: int) -> TuneReport:
    from service.evaluation.legs import read_legs
    from service.evaluation.options import LEAST_DEPTH
    from service.evaluation.tune import tune as fit

    embedded = embed_set(opened, {"hybrid"})
    with show_progress("search", total=len(embedded.questions)) as on_progress:
        asked = read_legs(opened.collection, embedded, depth=LEAST_DEPTH, on_progress=on_progress)
    return fit(
        asked,
        opened.source.judged.judgements,
        settings=opened.settings,
        confidences=_calibrate(opened, [each.best_cosine for each in asked]),
        unanswerable=_calibrate(opened, _ask_unanswerable(opened, unanswerable)),
        folds=folds,
        seed=seed,
    )


def _ask_unanswerable(opened: OpenSet, path: Path | None) -> list[float]:
    """The best cosine of each question that has no answer."""
    from service.db.engine import tenant_transaction
    from service.db.search import vector_search_nodes
    from service.evaluation.question_files import read_questions

    if path is None:
        return []
    place, best = opened.collection, []
    for text in read_questions(path):
        with tenant_transaction(place.engine, [place.tenant_id]) as connection:
            found = vector_search_nodes(
                connection,
                [place.tenant_id],
                query_embedding=opened.embedder.embed_query(text),
                node_types=place.node_types,
                top_k=1,
                dataset_name=place.dataset_name,
            )
        best.append(found[0].score if found else 0.0)
    return best


def _calibrate(opened: OpenSet, cosines: list[float]) -> Floats:
    import numpy as np

    from service.db.engine import tenant_transaction
    from service.db.evaluation import calibrate_cosines

    tenant = opened.collection.tenant_id
    with tenant_transaction(opened.collection.engine, [tenant]) as connection:
        return np.array(calibrate_cosines(connection, tenant, cosines=cosines))


def _apply(opened: OpenSet, report: TuneReport) -> dict[str, Json]:
    from service.db.engine import tenant_transaction
    from service.db.tenant_settings import read_tenant_settings, write_tenant_settings

    if not report.settings:
        return {}
    tenant = opened.collection.tenant_id
    with tenant_transaction(opened.collection.engine, [tenant]) as connection:
        whole = {**read_tenant_settings(connection, tenant), **report.settings}
        write_tenant_settings(connection, tenant, settings=whole)
    return report.settings


def _undo(tenant: str, *, as_json: bool) -> None:
    from service.db.database import open_database
    from service.db.engine import tenant_transaction
    from service.db.tenant_settings import undo_tenant_settings
    from service.settings import load_settings

    with (
        open_database(load_settings()) as database,
        tenant_transaction(database.engine, [tenant]) as connection,
    ):
        restored = undo_tenant_settings(connection, tenant)
    if as_json:
        print_json({"tenant": tenant, "settings": restored})
        return
    typer.echo(f"{tenant} has its settings of before: {_show(restored) or 'none of its own'}")


def _to_json(report: TuneReport) -> dict[str, Json]:
    from service.evaluation.tune import MEASURE, describe_point

    return {
        "measure": MEASURE,
        "queries": report.questions,
        "folds": report.folds,
        "held_out": {
            "current": round(report.held_out_current, 4),
            "tuned": round(report.held_out_tuned, 4),
            "gain": round(report.gain.mean, 4),
            "low": round(report.gain.low, 4),
            "high": round(report.gain.high, 4),
            "p_value": round(report.gain.p_value, 4),
        },
        "current": describe_point(report.current),
        "proposed": describe_point(report.proposed),
        "fold_choices": [describe_point(point) for point in report.fold_choices],
        "gate": {
            "current": _describe_gate(report.gate_current),
            "proposed": _describe_gate(report.gate_proposed),
        },
        "settings": report.settings,
    }


def _describe_gate(gate: GateOutcome) -> dict[str, Json]:
    return {
        name: value if value is None else round(value, 4) for name, value in asdict(gate).items()
    }


def _print_report(report: TuneReport) -> None:
    from service.evaluation.tune import MEASURE, describe_point

    gain = report.gain
    typer.echo(
        f"{report.questions} questions in {report.folds} folds; {MEASURE} on held-out questions: "
        f"{report.held_out_current:.4f} now, {report.held_out_tuned:.4f} tuned, gain "
        f"{gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}], p = {gain.p_value:.4f}."
    )
    typer.echo(f"Now:   {_show(describe_point(report.current))}")
    typer.echo(f"Tuned: {_show(describe_point(report.proposed))}")
    if not report.improves:
        typer.echo("The gain cannot be told from chance: keep the fusion you have.")
    typer.echo(f"Gate now:   {_show_gate(report.gate_current)}")
    typer.echo(f"Gate tuned: {_show_gate(report.gate_proposed)}")


def _show(settings: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _show_gate(gate: GateOutcome) -> str:
    refused = f"{gate.answerable_refused:.1%} of the answerable"
    if gate.unanswerable_refused is not None:
        refused += f" and {gate.unanswerable_refused:.1%} of the unanswerable"
    return f"{gate.threshold:.2f} refuses {refused} questions"
