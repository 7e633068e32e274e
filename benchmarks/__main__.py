"""python -m benchmarks [--quick]: measure, and write one JSON file and a page made of it."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.page import write_page
from benchmarks.parts import PARTS, Figures, Plan, list_parts, run_part

DATA = Path("../shared/data")
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Results:
    """The JSON file of a run, rewritten after every part: what is measured is not lost."""

    path: Path
    run: Figures
    parts: Figures

    def add(self, name: str, figures: Figures) -> None:
        """Keep a part's figures."""
        self.parts[name] = figures
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({**self.run, "parts": self.parts}, indent=2) + "\n")


def main(
    *,
    quick: Annotated[bool, typer.Option(help="Small sizes: under three minutes.")] = False,
    million: Annotated[bool, typer.Option(help="The keyword leg on 1,000,000 nodes too.")] = False,
    recall: Annotated[bool, typer.Option(help="Recall over 200,000 nodes too.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Measure this part alone, and keep the others of the file; repeatable."),
    ] = None,
    data: Annotated[Path, typer.Option(help="Folder of the evaluation sets.")] = DATA,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 7,
    peers_python: Annotated[
        Path | None, typer.Option(help="Interpreter that has the peers; this one if not given.")
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/bench.json"),
    page: Annotated[
        Path | None, typer.Option(help="Folder where benchmarks.md and its plots go.")
    ] = None,
) -> None:
    """Measure writing, searching and what is built on them, on this machine."""
    unknown = set(only or ()) - PARTS.keys()
    if unknown:
        console.print(f"No part {', '.join(sorted(unknown))}. There are: {', '.join(PARTS)}.")
        raise typer.Exit(2)
    plan = Plan(quick, seed, data, peers_python and peers_python.absolute())
    requested = {name for name, wanted in (("million", million), ("recall", recall)) if wanted}
    results = _open_results(output, plan, keep=bool(only))
    _run_parts(only or list_parts(plan, requested=requested), plan, results)
    console.print(f"figures: {output}")
    if page is not None:
        console.print(f"page: {write_page(output, page)}")


def _run_parts(names: list[str], plan: Plan, results: Results) -> None:
    for number, name in enumerate(names, start=1):
        console.print(f"[bold]{number}/{len(names)} {name}[/bold]")
        load, start = os.getloadavg()[0], time.perf_counter()
        figures = run_part(name, plan)
        seconds = round(time.perf_counter() - start, 1)
        console.print(f"  {seconds} s")
        # The load before it began tells whether something else ran on the machine.
        about: Figures = {"when": _now(), "seconds": seconds, "load_before": round(load, 2)}
        results.add(name, {**figures, **about})


def _open_results(path: Path, plan: Plan, *, keep: bool) -> Results:
    """Begin a file, or go on with one of the same size and seed."""
    run: Figures = {
        "when": _now(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "seed": plan.seed,
        "quick": plan.quick,
    }
    kept = json.loads(path.read_text()) if keep and path.is_file() else {}
    same = all(kept.get(name) == run[name] for name in ("seed", "quick", "machine"))
    return Results(path, run, kept["parts"] if same else {})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    typer.run(main)
