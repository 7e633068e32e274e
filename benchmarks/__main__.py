"""python -m benchmarks [--quick]: measure, print, and write one JSON file."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.corpus import DATA, load_corpus
from benchmarks.ingest import FULL, QUICK, measure_ingest
from benchmarks.recall import measure_recall
from benchmarks.search import (
    measure_bytes,
    measure_keywords,
    measure_many_tenants,
    measure_sizes,
    measure_small_tenant,
)
from benchmarks.stand import open_stand
from benchmarks.upsert import measure_upsert

console = Console(stderr=True)


def main(
    *,
    quick: Annotated[bool, typer.Option(help="Small sizes: under three minutes.")] = False,
    million: Annotated[bool, typer.Option(help="The keyword leg on 1,000,000 nodes too.")] = False,
    recall: Annotated[bool, typer.Option(help="Recall over 200,000 nodes too.")] = False,
    data: Annotated[Path, typer.Option(help="Folder of the evaluation set.")] = DATA,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 7,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/bench.json"),
) -> None:
    """Measure the write path and the search function on this machine."""
    if not (data / "corpus.jsonl.gz").is_file():
        console.print(f"No evaluation set at {data}: give --data, or nothing can be measured.")
        raise typer.Exit(1)
    corpus = load_corpus(data, seed=seed)
    sizes = [2_000, 10_000] if quick else [10_000, 100_000]
    tenants = 40 if quick else 1000
    results: dict[str, object] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "seed": seed,
    }
    with open_stand() as stand:
        results["many_tenants"] = measure_many_tenants(stand, corpus, tenants=tenants, size=500)
    with open_stand() as stand:
        results["upsert"] = measure_upsert(stand, corpus, batches=3 if quick else 10)
        results["search"] = measure_sizes(stand, corpus, sizes=sizes)
        results["small_tenant"] = measure_small_tenant(stand, corpus, size=sizes[0] // 2)
        results["bytes"] = measure_bytes(stand)
    if recall:
        with open_stand() as stand:
            results["recall"] = measure_recall(stand, corpus, rows=5_000 if quick else 200_000)
    with open_stand() as stand:
        results["ingest"] = measure_ingest(stand, sizes=QUICK if quick else FULL)
    if million:
        with open_stand() as stand:
            results["million"] = measure_keywords(stand, corpus, size=1_000_000)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    typer.run(main)
