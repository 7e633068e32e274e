"""contextforge ab: a change on a share of a tenant's traffic, and what it does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.quality.comparison import Comparison
    from service.quality.statistics import Difference
    from service.types import Experiment, Json

ab = typer.Typer(
    help="A change on a share of a tenant's traffic, and what it does.", no_args_is_help=True
)

TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant.")]
NameOption = Annotated[
    str | None, typer.Option("--name", help="The experiment; the newest if left out.")
]
MEASURES = {
    "positive_share": "share with a positive signal",
    "answer_recall": "answer recall, by feedback",
    "mrr": "MRR of the first positive",
    "click_through": "click-through",
    "error_rate": "error rate",
    "p50": "latency p50 (ms)",
    "p95": "latency p95 (ms)",
}


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """An experiment as it fits a terminal."""

    name: str
    state: str
    share: float
    tries: str
    started_at: datetime
    ended_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """One measure of both variants."""

    measure: str
    a: str
    b: str
    difference: str
    interval: str
    p: str


@ab.command("start")
def start(
    *,
    tenant: TenantOption,
    share: Annotated[float, typer.Option("--share", help="Share of the searches for variant b.")],
    changes: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of variant b; repeatable."),
    ],
    name: Annotated[str, typer.Option("--name", help="What to call it.")] = "experiment",
    interleave: Annotated[
        bool, typer.Option("--interleave", help="Show nodes of a and b in one list instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let a share of a tenant's searches try other settings, and record what people make of it."""
    from service.quality.experiments import begin_experiment

    with administer() as connection:
        experiment = begin_experiment(
            connection,
            tenant,
            name=name,
            share=share,
            settings=_read_changes(changes),
            interleaved=interleave,
        )
    _print_experiments([experiment], as_json=as_json)


@ab.command("status")
def status(*, tenant: TenantOption, as_json: AsJson = False) -> None:
    """List a tenant's experiments; one that does harm is stopped now, if it was not before."""
    from service.db.experiments import list_experiments
    from service.quality.experiments import roll_back_if_worse
    from service.settings import load_settings

    with administer() as connection:
        roll_back_if_worse(connection, tenant, settings=load_settings())
        experiments = list_experiments(connection, tenant)
    _print_experiments(experiments, as_json=as_json)


@ab.command("report")
def report(
    *,
    tenant: TenantOption,
    name: NameOption = None,
    effect: Annotated[
        float | None,
        typer.Option(
            "--effect",
            help="Difference to plan for, such as 0.05; what is seen so far if left out.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the variants: differences with intervals and p-values, and searches still needed."""
    from service.db.experiments import read_experiment, read_searches
    from service.quality.comparison import compare_variants
    from service.settings import load_settings

    with administer() as connection:
        experiment = read_experiment(connection, tenant, name=name)
        tried = read_searches(
            connection,
            tenant,
            experiment_id=experiment.experiment_id,
            most_per_caller=load_settings().ab_searches_per_caller,
        )
    found = compare_variants(experiment, tried, effect=effect)
    if as_json:
        print_json({"experiment": _describe(experiment), **asdict(found)})
        return
    _print_experiments([experiment], as_json=False)
    _print_comparison(found)


@ab.command("stop")
def stop(*, tenant: TenantOption, as_json: AsJson = False) -> None:
    """Send all searches of a tenant to its own settings again; what was recorded is kept."""
    from service.db.experiments import end_experiment, find_running, read_experiment
    from service.errors import NotFound
    from service.quality.experiments import STOPPED

    with administer() as connection:
        running = find_running(connection, tenant)
        if running is None:
            raise NotFound(f"No experiment of {tenant} is running.")
        end_experiment(
            connection, tenant, experiment_id=running.experiment_id, outcome=STOPPED, reason=None
        )
        ended = read_experiment(connection, tenant, name=running.name)
    _print_experiments([ended], as_json=as_json)


def _read_changes(changes: Sequence[str]) -> dict[str, Json]:
    read: dict[str, Json] = {}
    for change in changes:
        name, separator, value = change.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f'"{change}" is not NAME=VALUE.', param_hint="--set")
        read[name.strip().lower()] = value.strip()
    return read


def _print_experiments(experiments: Sequence[Experiment], *, as_json: bool) -> None:
    if as_json:
        print_json([_describe(each) for each in experiments])
        return
    print_rows([_shorten(each) for each in experiments], ExperimentRow, as_json=False)


def _describe(experiment: Experiment) -> dict[str, object]:
    return {**asdict(experiment), "experiment_id": str(experiment.experiment_id)}


def _shorten(experiment: Experiment) -> ExperimentRow:
    tries = ", ".join(f"{name}={value}" for name, value in experiment.settings.items())
    return ExperimentRow(
        name=experiment.name,
        state=(experiment.outcome or "running").replace("_", " "),
        share=experiment.share,
        tries=f"{tries} (interleaved)" if experiment.interleaved else tries,
        started_at=experiment.started_at,
        ended_at=experiment.ended_at,
        reason=experiment.reason,
    )


def _print_comparison(found: Comparison) -> None:
    other = "interleaved" if found.signs is not None else "b"
    typer.echo(
        f"a: {found.a.searches} searches, {found.a.rated} with feedback; "
        f"{other}: {found.b.searches} searches, {found.b.rated} with feedback."
    )
    rows = [_describe_measure(found, measure) for measure in MEASURES]
    print_rows(rows, MeasureRow, as_json=False)
    if found.signs is not None:
        signs = found.signs
        typer.echo(
            f"Interleaved: people wanted more of a {signs.wins_a} times, more of b {signs.wins_b} "
            f"times, as much of both {signs.ties} times; {_show_sign_test(signs.difference)}."
        )
    if found.left_out:
        typer.echo(
            f"{found.left_out} searches beyond AB_SEARCHES_PER_CALLER are left out: send X-Caller "
            "to tell callers apart."
        )
    typer.echo(_show_need(found))
    typer.echo(_VERDICTS[found.verdict])


_VERDICTS = {
    "better": "b is better than a.",
    "worse": "b is worse than a.",
    "undecided": "b cannot be told from a.",
}


def _describe_measure(found: Comparison, measure: str) -> MeasureRow:
    difference = found.differences[measure]
    return MeasureRow(
        measure=MEASURES[measure],
        a=_show(getattr(found.a, measure)),
        b=_show(getattr(found.b, measure)),
        difference="" if difference is None else f"{difference.value:+.4g}",
        interval="" if difference is None else f"{difference.low:+.4g} to {difference.high:+.4g}",
        p="" if difference is None else f"{difference.p_value:.4f}",
    )


def _show(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _show_sign_test(difference: Difference | None) -> str:
    if difference is None:
        return "nothing is decided yet"
    share = difference.value + 0.5
    return f"b won {share:.1%} of what was decided, p = {difference.p_value:.4f}"


def _show_need(found: Comparison) -> str:
    need = found.need
    if need.searches is None:
        return "No difference is seen yet: name one to plan for with --effect."
    what = "decided comparisons" if found.signs is not None else "searches of b"
    still = f"about {need.still} more searches" if need.still else "no more searches"
    return (
        f"To see a difference of {need.effect:+.3f} four times of five it takes {need.searches} "
        f"{what}: {still}."
    )
