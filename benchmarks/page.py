"""python -m benchmarks.page [RESULTS] [FOLDER]: make benchmarks.md, ablation.md and plots.

The words stand in the templates, the figures in the JSON: neither is edited in the pages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from benchmarks import tables
from benchmarks.draw import Bar, Series, draw_bars, draw_lines

TEMPLATE = Path(__file__).with_name("page_template.md")
ABLATION_TEMPLATE = Path(__file__).with_name("ablation_template.md")
DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS = DOCS / "benchmarks" / "results.json"
PLOTS = "benchmarks"
NOT_MEASURED = "Not measured in this run."

Figures = Mapping[str, Any]


def write_page(results: Path, folder: Path = DOCS) -> Path:
    """Write the pages and their plots; returns that of the benchmarks."""
    figures = json.loads(results.read_text(encoding="utf-8"))
    page, plots = make_page(figures)
    place = folder / PLOTS
    place.mkdir(parents=True, exist_ok=True)
    for name, plot in plots.items():
        (place / name).write_text(plot, encoding="utf-8")
    path = folder / "benchmarks.md"
    path.write_text(page, encoding="utf-8")
    (folder / "ablation.md").write_text(make_ablation_page(figures["parts"]), encoding="utf-8")
    return path


def make_page(results: Figures) -> tuple[str, dict[str, str]]:
    """The page, and its plots by file name; what was not measured is said to be missing."""
    plots: dict[str, str] = {}
    blocks = {"run": _describe_run(results), "parts": tables.describe_parts(results["parts"])}
    for name, (keys, describe) in BLOCKS.items():
        figures = _find(results["parts"], keys)
        blocks[name] = _describe_block(results["parts"], keys, describe)
        if "absent" not in figures and name in DRAWINGS:
            file = f"{name.replace('_', '-')}.svg"
            plots[file] = DRAWINGS[name](figures)
            blocks[name] += f"\n\n![{_read_title(plots[file])}]({PLOTS}/{file})"
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(blocks), plots


def make_ablation_page(parts: Figures) -> str:
    """The page of what each step is worth."""
    blocks = {name: _describe_block(parts, keys, say) for name, (keys, say) in ABLATION.items()}
    return Template(ABLATION_TEMPLATE.read_text(encoding="utf-8")).substitute(blocks)


def _describe_block(
    parts: Figures, keys: tuple[str, ...], describe: Callable[[Figures], str]
) -> str:
    figures = _find(parts, keys)
    return _say_absent(figures) if "absent" in figures else describe(figures)


def main(
    results: Annotated[Path, typer.Argument(help="JSON of a run.")] = RESULTS,
    folder: Annotated[Path, typer.Argument(help="Where the page goes.")] = DOCS,
) -> None:
    """Make the page anew from the figures of a run."""
    print(write_page(results, folder))


def _find(parts: Figures, keys: tuple[str, ...]) -> Figures:
    found: Any = parts
    for key in keys:
        found = found.get(key, {"absent": None})
        if "absent" in found:
            break
    figures: Figures = found
    return figures


def _say_absent(figures: Figures) -> str:
    return f"Not measured: {figures['absent']}." if figures["absent"] else NOT_MEASURED


def _describe_run(results: Figures) -> str:
    small = " Small data: the figures only show that it runs." if results["quick"] else ""
    return (
        f"Below: {results['machine']}, Python {results['python']}, seed {results['seed']}, a "
        "durable server with `shared_buffers` 2 GB. When each part was measured stands "
        f"[at the end](#when-it-was-measured).{small}"
    )


def _draw_contest(figures: Figures) -> str:
    bars = [
        Bar(
            name,
            system["p50_ms"],
            marked=name.startswith("ContextForge"),
            note=f"· nDCG@10 {figures['quality'][name]['ndcg@10']:.3f}",
        )
        for name, system in figures["systems"].items()
        if "absent" not in system
    ]
    title = f"Hybrid search over {figures['documents']:,} documents, p50"
    return draw_bars(title, bars, unit=" ms")


def _draw_search(figures: Figures) -> str:
    legs = {
        "ts_rank_cd": "ts_rank_cd_ms",
        "hybrid": "hybrid_ms",
        "vectors": "vector_ms",
        "keywords": "bm25_ms",
    }
    sizes = figures["sizes"]
    series = [
        Series(label, [(int(size), each[key]["p50"]) for size, each in sizes.items()])
        for label, key in legs.items()
    ]
    return draw_lines(
        "Search by size of the tenant, p50",
        series,
        across="nodes in the tenant",
        up="ms, p50",
        logarithmic=True,
    )


def _draw_pipeline(figures: Figures) -> str:
    bars = [
        Bar(name.replace("_", " "), each["p50"], marked=name in {"default", "plain"})
        for name, each in figures["ms"].items()
    ]
    return draw_bars("The pipeline plain, and with one step more, p50", bars, unit=" ms")


def _draw_packing(figures: Figures) -> str:
    series = [
        Series(label, [(int(budget), each["recall"]) for budget, each in ways.items()])
        for label, ways in (
            ("packed", figures["quality"]["pack_after_quality_filter"]),
            ("cut by characters", figures["quality"]["baseline"]),
        )
    ]
    return draw_lines(
        "Answer recall by budget", series, across="budget in tokens", up="answer recall"
    )


def _read_title(plot: str) -> str:
    return plot.split('aria-label="', 1)[1].split('"', 1)[0]


# Where a block's figures stand in the parts, and what becomes of them.
BLOCKS: dict[str, tuple[tuple[str, ...], Callable[[Figures], str]]] = {
    "hybrid_scifact": (("hybrid", "scifact"), tables.describe_contest),
    "hybrid_debian": (("hybrid", "debian_packages"), tables.describe_contest),
    "search": (("search",), tables.describe_search),
    "many_tenants": (("many_tenants",), tables.describe_many_tenants),
    "recall": (("recall",), tables.describe_recall),
    "million": (("million",), tables.describe_million),
    "upsert": (("upsert",), tables.describe_upsert),
    "ingest": (("ingest",), tables.describe_ingest),
    "pipeline": (("pipeline",), tables.describe_pipeline),
    "http": (("http",), tables.describe_http),
    "packing": (("packing",), tables.describe_packing),
    "graph": (("graph",), tables.describe_graph),
    "text_to_sql": (("text_to_sql",), tables.describe_text_to_sql),
    "adapter": (("adapter",), tables.describe_adapter),
    "bytes": (("search",), tables.describe_bytes),
}
ABLATION: dict[str, tuple[tuple[str, ...], Callable[[Figures], str]]] = {
    **{
        name: (("ablation", "sets", name), tables.describe_changes)
        for name in ("scifact", "cisi", "hotpotqa")
    },
    "phrasings": (("ablation", "sets"), tables.describe_phrasings),
    "cross_encoder": (("ablation", "cross_encoder"), tables.describe_cross_encoder),
    "packing": (("packing",), tables.describe_packing),
}
DRAWINGS: dict[str, Callable[[Figures], str]] = {
    "hybrid_scifact": _draw_contest,
    "hybrid_debian": _draw_contest,
    "search": _draw_search,
    "pipeline": _draw_pipeline,
    "packing": _draw_packing,
}


if __name__ == "__main__":
    typer.run(main)
