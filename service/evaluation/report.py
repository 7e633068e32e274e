"""A comparison as one HTML page: tables and plots in it, nothing loaded from elsewhere (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from service.evaluation.compare import CONFIDENCE, RESAMPLES, Comparison, QueryChange
from service.evaluation.evaluate import Evaluation
from service.evaluation.plots import plot_differences, plot_interval, plot_pairs

SHOWN = 20

_STYLE = """
:root { color-scheme: light dark; --text: #1c1e21; --soft: #5f6670; --line: #d6dae0;
  --paper: #fff; --gain: #1a7f52; --loss: #b3372f; --mark: #2f5fb3; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --soft: #9aa3ad; --line: #3a4048;
  --paper: #16181b; --gain: #4cc38a; --loss: #f0776c; --mark: #7aa7f0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--line);
  vertical-align: top; } th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
p.note { color: var(--soft); }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
"""


def render_report(
    title: str,
    comparisons: Sequence[Comparison],
    *,
    a: Evaluation,
    b: Evaluation,
    questions: Mapping[str, str],
) -> str:
    """Render a whole page; the first comparison is the one in the plots."""
    main = comparisons[0]
    parts = (
        f"<h1>{escape(title)}</h1>",
        f"<p>{_verdict(main)}</p>",
        _settings_table(a, b),
        "<h2>Measures</h2>",
        _measures_table(comparisons),
        f'<p class="note">b minus a, mean over {len(main.changes)} questions, '
        f"{CONFIDENCE:.0%} bootstrap interval and two-sided p-value of a paired randomisation "
        f"test (random signs), {RESAMPLES:,} samples each.</p>",
        f"<h2>{escape(main.measure)}: mean difference</h2>",
        plot_interval(main.difference),
        f"<h2>{escape(main.measure)}: every question, from most gained to most lost</h2>",
        plot_differences([change.difference for change in main.changes]),
        f"<h2>{escape(main.measure)}: a against b</h2>",
        plot_pairs([(change.a, change.b) for change in main.changes]),
        "<h2>Questions that changed most</h2>",
        _changes_table(main.changes[:SHOWN], questions),
        "<h2>Latency in ms</h2>",
        _latency_table(a, b),
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _verdict(comparison: Comparison) -> str:
    difference = comparison.difference
    told = difference.low > 0 or difference.high < 0
    better = "b is better" if difference.mean > 0 else "a is better"
    words = better if told else "No difference that could be told from chance"
    return (
        f"<strong>{words}</strong>: {escape(comparison.measure)} {comparison.mean_a:.4f} with a, "
        f"{comparison.mean_b:.4f} with b, difference {difference.mean:+.4f} "
        f"[{difference.low:+.4f}, {difference.high:+.4f}], p = {difference.p_value:.4f}."
    )


def _settings_table(a: Evaluation, b: Evaluation) -> str:
    left = {"mode": a.retrieval.mode, **a.retrieval.describe()}
    right = {"mode": b.retrieval.mode, **b.retrieval.describe()}
    rows = ((name, left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right]))
    return _table(("setting", "a", "b"), ([n, _show(x), _show(y)] for n, x, y in rows))


def _measures_table(comparisons: Iterable[Comparison]) -> str:
    head = ("measure", "a", "b", "difference", "interval", "p", "wins", "losses", "ties")
    return _table(
        head,
        (
            [
                each.measure,
                f"{each.mean_a:.4f}",
                f"{each.mean_b:.4f}",
                f"{each.difference.mean:+.4f}",
                f"{each.difference.low:+.4f} to {each.difference.high:+.4f}",
                f"{each.difference.p_value:.4f}",
                *(str(count) for count in (each.wins, each.losses, each.ties)),
            ]
            for each in comparisons
        ),
    )


def _changes_table(changes: Iterable[QueryChange], questions: Mapping[str, str]) -> str:
    return _table(
        ("question", "a", "b", "difference"),
        (
            [
                f"{each.query_id}: {questions[each.query_id]}",
                f"{each.a:.3f}",
                f"{each.b:.3f}",
                f"{each.difference:+.3f}",
            ]
            for each in changes
        ),
    )


def _latency_table(a: Evaluation, b: Evaluation) -> str:
    steps = dict.fromkeys([*a.latency_ms, *b.latency_ms])
    return _table(
        ("step", "a p50", "a p95", "a p99", "b p50", "b p95", "b p99"),
        (
            [
                step,
                *(
                    f"{each.latency_ms[step][point]:.2f}" if step in each.latency_ms else ""
                    for each in (a, b)
                    for point in ("p50", "p95", "p99")
                ),
            ]
            for step in steps
        ),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        first, *others = (escape(cell) for cell in cells)
        numbers = "".join(f'<{tag} class="number">{cell}</{tag}>' for cell in others)
        return f"<tr><{tag}>{first}</{tag}>{numbers}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table>{line(head, "th")}{body}</table></div>'


def _show(value: object) -> str:
    return "" if value is None else str(value)
