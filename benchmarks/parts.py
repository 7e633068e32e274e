"""The parts of a run: each opens what it needs, measures, and returns its figures.

What is compared is compared within a part, so a part can be measured again alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.ablation import SETS as ABLATED_SETS
from benchmarks.ablation import measure_ablation
from benchmarks.adapter import measure_adapter
from benchmarks.corpus import Corpus, load_corpus
from benchmarks.graph import measure_pagerank, measure_walk
from benchmarks.http import measure_http
from benchmarks.ingest import FULL, QUICK, measure_ingest
from benchmarks.packing import measure_packing
from benchmarks.peers.contest import measure_hybrid
from benchmarks.peers.sets import read_debian, read_scifact
from benchmarks.pipeline import measure_pipeline
from benchmarks.recall import measure_recall
from benchmarks.search import (
    measure_bytes,
    measure_keywords,
    measure_many_tenants,
    measure_sizes,
    measure_small_tenant,
)
from benchmarks.stand import open_stand
from benchmarks.text_to_sql import measure_text_to_sql
from benchmarks.upsert import measure_upsert
from service.embedding import load_embedder

Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Plan:
    """What every part is told: how large, with which seed, where the sets and the peers are."""

    quick: bool
    seed: int
    data: Path
    peers_python: Path | None = None

    @property
    def corpus(self) -> Corpus:
        """Package descriptions with 1024-d vectors, read once."""
        return _read_corpus(self.data / "debian_packages", self.seed)

    @property
    def sizes(self) -> list[int]:
        """Nodes of the one big tenant."""
        return [2_000, 10_000] if self.quick else [10_000, 100_000]


@dataclass(frozen=True, slots=True)
class Part:
    """A measurement, the evaluation sets it needs, and when it is left out."""

    measure: Callable[[Plan], Figures]
    sets: tuple[str, ...] = ()
    on_request: bool = False
    in_quick: bool = True


def list_parts(plan: Plan, *, requested: set[str]) -> list[str]:
    """The parts of a plain run, and those asked for."""
    return [
        name
        for name, part in PARTS.items()
        if name in requested or not (part.on_request or (plan.quick and not part.in_quick))
    ]


def run_part(name: str, plan: Plan) -> Figures:
    """Measure a part, or say which of its sets is missing."""
    part = PARTS[name]
    missing = [each for each in part.sets if not (plan.data / each).is_dir()]
    if missing:
        return {"absent": f"needs the evaluation set {', '.join(missing)} in {plan.data}"}
    return part.measure(plan)


@lru_cache(maxsize=1)
def _read_corpus(folder: Path, seed: int) -> Corpus:
    return load_corpus(folder, seed=seed)


def _hybrid(plan: Plan) -> Figures:
    few = 50 if plan.quick else None
    sets = (
        read_scifact(plan.data, most_questions=few),
        read_debian(plan.data, most_questions=few, most_documents=5_000 if plan.quick else None),
    )
    figures: Figures = {}
    for contest in sets:
        # An installation for the model of the set: the peers store its vectors as they are, too.
        with open_stand(dimension=contest.asked.vectors.shape[1]) as stand:
            figures[contest.name] = measure_hybrid(stand, contest, peers_python=plan.peers_python)
    return figures


def _search(plan: Plan) -> Figures:
    with open_stand() as stand:
        return {
            "sizes": measure_sizes(stand, plan.corpus, sizes=plan.sizes),
            "beside": measure_small_tenant(stand, plan.corpus, size=plan.sizes[0] // 2),
            "bytes": measure_bytes(stand),
        }


def _many_tenants(plan: Plan) -> Figures:
    with open_stand() as stand:
        tenants = 40 if plan.quick else 1000
        return measure_many_tenants(stand, plan.corpus, tenants=tenants, size=500)


def _upsert(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_upsert(stand, plan.corpus, batches=3 if plan.quick else 10)


def _ingest(plan: Plan) -> Figures:
    with open_stand() as stand:
        sizes = QUICK if plan.quick else FULL
        return measure_ingest(stand, sizes=sizes, data=plan.data / "scifact")


def _pipeline(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_pipeline(stand, plan.corpus, size=plan.sizes[0])


def _packing(plan: Plan) -> Figures:
    questions = 50 if plan.quick else 500
    with open_stand() as stand:
        return measure_packing(stand, plan.data / "squad2_dev", questions=questions, seed=plan.seed)


def _graph(plan: Plan) -> Figures:
    nodes = 5_000 if plan.quick else 100_000
    with open_stand() as stand:
        return {
            "pagerank": measure_pagerank(stand, nodes=nodes, links=10 * nodes),
            "hotpotqa": measure_walk(stand, plan.data / "hotpotqa"),
        }


def _text_to_sql(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_text_to_sql(stand, plan.data / "spider", embedder=load_embedder())


def _adapter(plan: Plan) -> Figures:
    fields, rounds = (1000, 2) if plan.quick else (5000, 5)
    with open_stand() as stand:
        return measure_adapter(stand, fields=fields, rounds=rounds, embedder=load_embedder())


def _http(plan: Plan) -> Figures:
    seconds = 5 if plan.quick else 30
    with open_stand() as stand:
        return measure_http(
            stand, plan.corpus, size=plan.sizes[0], seconds=seconds, model=load_embedder()
        )


def _ablation(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_ablation(stand, plan.data)


def _recall(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_recall(stand, plan.corpus, rows=5_000 if plan.quick else 200_000)


def _million(plan: Plan) -> Figures:
    with open_stand() as stand:
        return measure_keywords(stand, plan.corpus, size=1_000_000)


PARTS: dict[str, Part] = {
    "hybrid": Part(_hybrid, ("scifact", "debian_packages")),
    "search": Part(_search, ("debian_packages",)),
    "many_tenants": Part(_many_tenants, ("debian_packages",)),
    "upsert": Part(_upsert, ("debian_packages",)),
    "ingest": Part(_ingest, ("scifact",)),
    "pipeline": Part(_pipeline, ("debian_packages",)),
    "packing": Part(_packing, ("squad2_dev",), in_quick=False),
    "graph": Part(_graph, ("hotpotqa",)),
    "adapter": Part(_adapter),
    "http": Part(_http, ("debian_packages",)),
    "text_to_sql": Part(_text_to_sql, ("spider",), in_quick=False),
    "ablation": Part(_ablation, ABLATED_SETS, in_quick=False),
    "recall": Part(_recall, ("debian_packages",), on_request=True),
    "million": Part(_million, ("debian_packages",), on_request=True),
}
