"""contextforge compare: two ways of retrieval on the same questions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.evaluate import FusionOption, ModeOption, describe_set
from service.cli.evaluating import (
    DatasetOption,
    EmbeddingsOption,
    FewShotOption,
    KeepOption,
    LangOption,
    OpenSet,
    SeedOption,
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
    from collections.abc import Sequence

    from service.evaluation.compare import Comparison
    from service.evaluation.evaluate import Evaluation
    from service.types import Json

SHOWN = 10


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A measure of both runs as it is printed."""

    measure: str
    a: str
    b: str
    gain: str
    interval: str
    p: str
    won_lost_tied: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A question that changed as it is printed."""

    question: str
    a: str
    b: str
    difference: str


def compare(
    path: SetPath,
    *,
    a: Annotated[str, typer.Option("--a", help='Settings of run a, such as "fusion=rrf".')] = "",
    b: Annotated[str, typer.Option("--b", help='Settings of run b, such as "mode=bm25".')] = "",
    measure: Annotated[str, typer.Option("--measure", help="The one that is plotted.")] = "ndcg@10",
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page with plots to this file.")
    ] = None,
    tenant: TenantOption = None,
    dataset: DatasetOption = None,
    split: SplitOption = "test",
    mode: ModeOption = "hybrid",
    fusion: FusionOption = None,
    embeddings: EmbeddingsOption = None,
    few_shot: FewShotOption = None,
    keep: KeepOption = False,
    lang: LangOption = "en",
    seed: SeedOption = 20,
    as_json: AsJson = False,
) -> None:
    """Compare two settings question by question: difference, interval, p-value, what changed."""
    from service.evaluation.metrics import MEASURES
    from service.evaluation.options import Retrieval

    if measure not in MEASURES:
        raise InvalidInput(f'There is no measure "{measure}".', hint=f"Use {', '.join(MEASURES)}.")
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
        ways = [
            read_retrieval(base, [f"mode={mode}", changes], fusion=fusion) for changes in (a, b)
        ]
        runs = evaluate_set(opened, ways)
    comparisons = _compare(runs, measure, seed=seed)
    if report is not None:
        _write_report(report, comparisons, runs=runs, opened=opened)
    if as_json:
        print_json(
            {**_to_json(comparisons, runs, opened=opened), **describe_set(opened, split=split)}
        )
        return
    _print_comparison(comparisons, runs, opened=opened)
    if report is not None:
        typer.echo(f"Report: {report}")


def _compare(runs: Sequence[Evaluation], measure: str, *, seed: int) -> list[Comparison]:
    """The measure asked for first, then the others."""
    from service.evaluation.compare import compare_values

    a, b = runs
    names = dict.fromkeys([measure, *a.values])
    return [compare_values(a.values[n], b.values[n], measure=n, seed=seed) for n in names]


def _write_report(
    path: Path, comparisons: Sequence[Comparison], *, runs: Sequence[Evaluation], opened: OpenSet
) -> None:
    from service.evaluation.report import render_report

    a, b = runs
    title = f"Comparison on {opened.source.judged.folder.resolve().name}"
    page = render_report(title, comparisons, a=a, b=b, questions=opened.texts)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be written ({exc.strerror}).") from exc


def _to_json(
    comparisons: Sequence[Comparison], runs: Sequence[Evaluation], *, opened: OpenSet
) -> dict[str, Json]:
    from service.evaluation.compare import CONFIDENCE, RESAMPLES

    main = comparisons[0]
    return {
        "measure": main.measure,
        "a": runs[0].to_json(),
        "b": runs[1].to_json(),
        "differences": {each.measure: _describe(each) for each in comparisons},
        "changed_most": [
            {
                **asdict(change),
                "difference": change.difference,
                "question": opened.texts[change.query_id],
            }
            for change in main.changes[:SHOWN]
            if change.difference
        ],
        "interval": f"bootstrap, {CONFIDENCE:.0%}, {RESAMPLES} samples",
        "test": f"paired randomisation of signs, two-sided, {RESAMPLES} samples",
    }


def _describe(comparison: Comparison) -> dict[str, Json]:
    difference = comparison.difference
    return {
        "difference": round(difference.mean, 4),
        "low": round(difference.low, 4),
        "high": round(difference.high, 4),
        "p_value": round(difference.p_value, 4),
        "wins": comparison.wins,
        "losses": comparison.losses,
        "ties": comparison.ties,
    }


def _print_comparison(
    comparisons: Sequence[Comparison], runs: Sequence[Evaluation], *, opened: OpenSet
) -> None:
    rows = [
        ComparisonRow(
            each.measure,
            f"{each.mean_a:.4f}",
            f"{each.mean_b:.4f}",
            f"{each.difference.mean:+.3f}",
            f"{each.difference.low:+.3f} to {each.difference.high:+.3f}",
            f"{each.difference.p_value:.4f}",
            f"{each.wins}/{each.losses}/{each.ties}",
        )
        for each in comparisons
    ]
    print_rows(rows, ComparisonRow, as_json=False)
    changes = [
        ChangeRow(
            opened.texts[change.query_id],
            f"{change.a:.3f}",
            f"{change.b:.3f}",
            f"{change.difference:+.3f}",
        )
        for change in comparisons[0].changes[:SHOWN]
        if change.difference
    ]
    if changes:
        print_rows(changes, ChangeRow, as_json=False)
    for name, run in zip("ab", runs, strict=True):
        times = "; ".join(
            f"{step} p50 {points['p50']:.2f} ms, p95 {points['p95']:.2f} ms"
            for step, points in run.latency_ms.items()
        )
        typer.echo(f"{name}: {run.retrieval.mode}, {run.retrieval.describe()}; {times}")
