"""The page of the benchmarks: every figure comes from the JSON, what is missing is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.draw import Bar, Series, draw_bars, draw_lines
from benchmarks.page import (
    DOCS,
    NOT_MEASURED,
    RESULTS,
    make_ablation_page,
    make_page,
    write_page,
)
from benchmarks.tables import make_table

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = {"when": "2026-01-02T03:04:05+00:00", "seconds": 12.5, "load_before": 0.25}
ZERO = {"mean": 0.0, "low": 0.0, "high": 0.0, "p_value": 1.0}
AHEAD = {"mean": 0.112, "low": 0.081, "high": 0.144, "p_value": 0.0001}


def describe_quality(ndcg: float, ahead: dict[str, float]) -> dict[str, Any]:
    differences = {"ContextForge rrf": ahead, "ContextForge convex": ahead}
    return {"ndcg@10": ndcg, "recall@100": 0.963, "ours_minus_it": differences}


def make_results(**parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "when": ABOUT["when"],
        "machine": "abacus, 2 cores",
        "python": "3.11.7",
        "seed": 7,
        "quick": False,
        "parts": {name: {**part, **ABOUT} for name, part in parts.items()},
    }


CONTEST = {
    "documents": 5183,
    "questions": 300,
    "systems": {
        "ContextForge rrf": {"p50_ms": 4.0, "p95_ms": 5.0, "over_ours": 1.0},
        "plain SQL": {"p50_ms": 14.4, "p95_ms": 37.9, "over_ours": 3.68},
        "txtai": {"absent": "txtai is not installed"},
    },
    "quality": {
        "ContextForge rrf": describe_quality(0.7036, ZERO),
        "plain SQL": describe_quality(0.6009, AHEAD),
    },
}


def test_the_figures_of_the_json_stand_in_the_page():
    page, plots = make_page(make_results(hybrid={"scifact": CONTEST}))
    assert (
        "| plain SQL | 14.4 ms | 37.9 ms | 3.68 | 0.6009 | 0.963 "
        "| +0.112 (+0.081 to +0.144) | +0.112 (+0.081 to +0.144) |" in page
    )
    assert "![Hybrid search over 5,183 documents, p50](benchmarks/hybrid-scifact.svg)" in page
    assert list(plots) == ["hybrid-scifact.svg"]
    assert "14.4 ms · nDCG@10 0.601" in plots["hybrid-scifact.svg"]


def test_an_absent_system_is_said_to_be_absent_and_not_drawn():
    page, plots = make_page(make_results(hybrid={"scifact": CONTEST}))
    assert "| txtai | txtai is not installed |" in page
    assert "txtai" not in plots["hybrid-scifact.svg"]


def test_a_part_that_was_not_measured_is_said_to_be_missing():
    page, plots = make_page(make_results())
    assert page.count(NOT_MEASURED) >= 10
    assert plots == {}


def test_a_part_without_its_set_says_which():
    page, _ = make_page(make_results(million={"absent": "needs the evaluation set x in y"}))
    assert "Not measured: needs the evaluation set x in y." in page


def test_a_quick_run_says_that_its_figures_mean_little():
    assert "Small data" in make_page(make_results() | {"quick": True})[0]
    assert "Small data" not in make_page(make_results())[0]


def test_the_page_tells_when_and_how_busy_each_part_was():
    page, _ = make_page(make_results(million={"absent": "left out"}))
    assert "| million | 2026-01-02 03:04 | 12.5 | 0.25 |" in page


def test_the_page_and_its_plots_are_written_beside_each_other(tmp_path: Path):
    results = tmp_path / "results.json"
    results.write_text(json.dumps(make_results(hybrid={"scifact": CONTEST})))
    page = write_page(results, tmp_path / "out")
    for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text()):
        assert (page.parent / link).is_file()


@pytest.mark.skipif(not RESULTS.is_file(), reason="no figures of a full run in docs/benchmarks")
def test_the_page_of_the_documentation_is_made_of_its_figures():
    page, plots = make_page(json.loads(RESULTS.read_text()))
    assert (DOCS / "benchmarks.md").read_text() == page
    drawn = {path.name: path.read_text() for path in (DOCS / "benchmarks").glob("*.svg")}
    assert drawn == plots
    parts = json.loads(RESULTS.read_text())["parts"]
    assert (DOCS / "ablation.md").read_text() == make_ablation_page(parts)


def test_the_gain_of_a_step_stands_with_its_interval_and_its_time():
    base = {"ndcg@10": 0.7, "recall@10": 0.8, "p50_ms": 12.0}
    gain = {"ndcg@10": AHEAD, "recall@10": ZERO}
    steps = {"base": base, "no walk": {**base, "gain": gain, "added_p50_ms": -2.54}}
    figures = {"sets": {"scifact": {"questions": 300, "steps": steps}}}
    page = make_ablation_page(make_results(ablation=figures)["parts"])
    assert "| no walk | 0.7000 | 0.8000 | +0.112 (+0.081 to +0.144) | none | -2.5 ms |" in page
    assert page.count(NOT_MEASURED) == 4


# --- charts ---------------------------------------------------------------------------------


def read_widths(plot: str) -> list[float]:
    rects = ElementTree.fromstring(plot).iter(f"{SVG}rect")
    return [float(rect.attrib["width"]) for rect in rects][1:]  # the first is the ground


def test_a_bar_is_as_long_as_its_value():
    short, long, none = read_widths(draw_bars("t", [Bar("a", 2), Bar("b", 8), Bar("c", 0)]))
    assert long == pytest.approx(4 * short, abs=0.2)
    assert none == 0


def test_on_logarithmic_axes_equal_ratios_are_equal_distances():
    points = [(10.0, 1.0), (100.0, 10.0), (1000.0, 100.0)]
    plot = draw_lines("t", [Series("a", points)], across="x", up="y", logarithmic=True)
    dots = list(ElementTree.fromstring(plot).iter(f"{SVG}circle"))
    xs = [float(dot.attrib["cx"]) for dot in dots]
    ys = [float(dot.attrib["cy"]) for dot in dots]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_labels_of_equal_ends_do_not_cover_each_other():
    lines = [Series(name, [(1.0, 1.0), (2.0, 2.0)]) for name in ("first", "second")]
    plot = draw_lines("t", lines, across="x", up="y")
    texts = {text.text: text for text in ElementTree.fromstring(plot).iter(f"{SVG}text")}
    heights = [float(texts[name].attrib["y"]) for name in ("first", "second")]
    assert abs(heights[0] - heights[1]) >= 12


def test_a_chart_loads_nothing_and_knows_the_dark():
    plot = draw_bars("a < b & c", [Bar("<x>", 1, note="&")], unit=" ms")
    ElementTree.fromstring(plot)
    assert re.findall(r"https?://[^\"]+", plot) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|@import|<script|<image", plot)
    assert "prefers-color-scheme: dark" in plot


def test_a_table_has_a_line_for_each_row():
    assert make_table(["a", "b"], [["x", 1], ["y", 2]]).splitlines() == [
        "| a | b |",
        "| --- | ---: |",
        "| x | 1 |",
        "| y | 2 |",
    ]
