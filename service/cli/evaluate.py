"""contextforge eval: how good retrieval is on judged questions, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.evaluating import (
    DatasetOption,
    EmbeddingsOption,
    FewShotOption,
    KeepOption,
    LangOption,
    OpenSet,
    SetOptions,
    SetPath,
    SplitOption,
    TenantOption,
    evaluate_set,
    open_set,
    read_retrieval,
)
from service.cli.output import AsJson, print_json, print_rows
from service.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.evaluation.evaluate import Evaluation
    from service.types import Json

ModeOption = Annotated[
    str | None,
    typer.Option(
        "--mode",
        help="What is measured: bm25, vector, hybrid or pipeline.",
        show_default="hybrid, with --budget pipeline",
    ),
]
BudgetOption = Annotated[
    int | None,
    typer.Option(
        "--budget",
        min=1,
        help="Pack what the pipeline finds into so many tokens, and judge the context too.",
    ),
]
FusionOption = Annotated[
    str | None, typer.Option("--fusion", help="How hybrid fuses: rrf or convex.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given again."),
]


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """A measure as it is printed."""

    measure: str
    mean: str


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Times of a step as they are printed, in milliseconds."""

    step: str
    p50: str
    p95: str
    p99: str


def evaluate(
    path: SetPath,
    *,
    tenant: TenantOption = None,
    dataset: DatasetOption = None,
    split: SplitOption = "test",
    mode: ModeOption = None,
    fusion: FusionOption = None,
    budget: BudgetOption = None,
    set_: SetOption = None,
    embeddings: EmbeddingsOption = None,
    few_shot: FewShotOption = None,
    keep: KeepOption = False,
    lang: LangOption = "en",
    as_json: AsJson = False,
) -> None:
    """Measure retrieval on a BEIR or text-to-SQL folder: nDCG, MRR, precision, recall, latency.

    The folder is loaded into a scratch tenant, which is deleted at the end unless it is kept.
    """
    from service.evaluation.options import Retrieval

    chosen = _choose_mode(mode, budget)
    options = SetOptions(
        path,
        split,
        tenant=tenant,
        dataset=dataset,
        embeddings=embeddings,
        keep=keep,
        lang=lang,
        few_shot=few_shot,
    )
    with open_set(options) as opened:
        base = Retrieval("hybrid", opened.settings)
        retrieval = read_retrieval(base, [*chosen, *(set_ or ())], fusion=fusion)
        [evaluation] = evaluate_set(opened, [retrieval])
        fields = _judge_fields(opened, evaluation)
    if as_json:
        print_json({**fields, **evaluation.to_json(), **describe_set(opened, split=split)})
        return
    _print_evaluation(evaluation, fields)
    typer.echo(
        f"{len(evaluation.rankings)} questions on {opened.documents} documents, {retrieval.mode}: "
        + ", ".join(f"{name}={value}" for name, value in retrieval.describe().items())
    )


def describe_set(opened: OpenSet, *, split: str) -> dict[str, Json]:
    """Which set was asked, and where it was searched."""
    return {
        "corpus": opened.documents,
        "rejected": len(opened.rejected),
        "set": opened.source.judged.folder.resolve().name,
        "split": split,
        "tenant": opened.collection.tenant_id,
        "embedder": opened.embedder.version,
    }


def _choose_mode(mode: str | None, budget: int | None) -> list[str]:
    """The mode, and the budget, as settings; a context is what the pipeline makes."""
    if budget is None:
        return [f"mode={mode or 'hybrid'}"]
    if mode not in (None, "pipeline"):
        raise InvalidInput("--budget packs what the pipeline finds.", hint="Use --mode pipeline.")
    return ["mode=pipeline", f"budget={budget}"]


def _judge_fields(opened: OpenSet, evaluation: Evaluation) -> dict[str, float]:
    """Field recall and recall of all tables of a join, where the set is about text-to-SQL."""
    from service.evaluation.metrics import average
    from service.evaluation.text_to_sql import CUTS, judge_tables, make_completer

    if opened.source.sql_set is None:
        return {}
    recall = {f"field_recall@{cut}": evaluation.means[f"recall@{cut}"] for cut in CUTS}
    schemas = opened.source.schemas
    joins = judge_tables(
        opened.source.sql_set,
        evaluation.rankings,
        complete_joins=make_completer(schemas) if schemas else None,
    )
    means = recall | {name: average(values) for name, values in joins.items()}
    return {name: round(mean, 4) for name, mean in means.items()}


def _print_evaluation(evaluation: Evaluation, fields: Mapping[str, float]) -> None:
    means = {**fields, **evaluation.means}
    rows = [MeasureRow(name, f"{mean:.4f}") for name, mean in means.items()]
    print_rows(rows, MeasureRow, as_json=False)
    times = [
        LatencyRow(f"{step} (ms)", *(f"{value:.2f}" for value in points.values()))
        for step, points in evaluation.latency_ms.items()
    ]
    print_rows(times, LatencyRow, as_json=False)
