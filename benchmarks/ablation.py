"""python -m benchmarks.ablation: what each step of the pipeline gains and costs on judged sets.

The default pipeline is asked with one thing changed at a time, every question of all of them in
turn. A gain is the difference per question, with a 95 % bootstrap interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.corpus import DIMENSION
from benchmarks.paraphrases import read_paraphrases
from benchmarks.stand import Stand, create_tenant, open_stand, vacuum
from benchmarks.untrained import time_cross_encoder
from service.embedding import Embedder, load_embedder
from service.evaluation.beir import JudgedSet, Question, read_objects
from service.evaluation.compare import compare_values
from service.evaluation.evaluate import EmbeddedQuestions, Evaluation, evaluate
from service.evaluation.options import Retrieval, change_retrieval
from service.evaluation.pipeline_searcher import PipelineSearcher
from service.evaluation.scratch import load_scratch, name_scratch, read_source
from service.evaluation.searchers import Collection, DocumentNames, NodeSearcher, Searcher
from service.evaluation.vectors import GivenVectors, read_vectors
from service.retrieval.ranks import refresh_ranks
from service.settings import Settings

MEASURES = ("ndcg@10", "recall@10")
SETS = ("scifact", "cisi", "hotpotqa")
PHRASED = ("scifact", "hotpotqa")
# What a cross-encoder is asked for five results: twice as many texts.
RERANKED = 10
# The pipeline as it is served, but for documents: a ranking has more than five.
BASE = {"mode": "pipeline", "multidoc": "off"}
CHANGES: dict[str, dict[str, str]] = {
    "keywords alone": {"mode": "bm25"},
    "vectors alone": {"mode": "vector"},
    "search alone (rrf)": {"mode": "hybrid"},
    "search alone (convex)": {"mode": "hybrid", "hybrid_fusion": "convex"},
    "convex fusion": {"hybrid_fusion": "convex"},
    "no adaptive weights": {"query_adaptive_weights": "off"},
    "no gate": {"context_confidence_threshold": "0"},
    "no walk": {"graph_walk_weight": "0"},
    "global PageRank, weight .1": {"graph_prior_weight": "0.1"},
    "global PageRank, weight .3": {"graph_prior_weight": "0.3"},
    "mmr": {"reranker": "mmr"},
    "no quality filter": {"content_quality_threshold": "0"},
    "multi-document": {"multidoc": "on"},
}

Figures = dict[str, object]

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A set in a tenant of its own, with the vectors of its questions."""

    judged: JudgedSet
    collection: Collection
    embedder: Embedder
    vectors: GivenVectors


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets.")] = Path("../shared/data"),
    only: Annotated[list[str] | None, typer.Option(help="This set alone; repeatable.")] = None,
) -> None:
    """Measure all sets that are there and print JSON."""
    with open_stand() as stand:
        print(json.dumps(measure_ablation(stand, data, sets=only or SETS), indent=2))


def measure_ablation(
    stand: Stand, data: Path, *, sets: Sequence[str] = SETS, most: int | None = None
) -> Figures:
    """Every change on every set, and the recorded paraphrases where there are some."""
    embedder = load_embedder()
    figures: dict[str, Figures] = {}
    for name in sets:
        console.print(name)
        loaded = load_set(stand, data / name, embedder=embedder)
        questions = loaded.judged.questions[:most]
        figures[name] = {
            "questions": len(questions),
            "steps": compare_changes(loaded, questions),
        }
        if name in PHRASED:
            figures[name]["phrasings"] = compare_phrasings(loaded, read_paraphrases(name))
    return {"sets": figures, "cross_encoder": _time_reranking(data / sets[0])}


def load_set(stand: Stand, folder: Path, *, embedder: Embedder) -> Loaded:
    """Store a set with its ready-made vectors and its links."""
    source = read_source(folder)
    given = read_vectors(
        folder / "corpus_minilm.npy",
        folder / "queries_minilm.npy",
        document_rows=source.documents,
        question_rows=source.judged.rows,
        most=DIMENSION,
    )
    # They are that embedder's own: so is what is known of its similarities.
    vectors = replace(given, version=embedder.version)
    scratch = name_scratch(source, vectors, lang="en")
    create_tenant(stand, scratch.tenant_id)
    load_scratch(stand.engine, scratch)
    refresh_ranks(stand.engine, scratch.tenant_id)
    vacuum(stand)
    collection = Collection(stand.engine, scratch.tenant_id)
    return Loaded(source.judged, collection, embedder, vectors)


def compare_changes(loaded: Loaded, questions: Sequence[Question]) -> Figures:
    """The base, and what each change makes of it."""
    base = change_retrieval(Retrieval("hybrid", Settings()), BASE)
    changed = {name: change_retrieval(base, change) for name, change in CHANGES.items()}
    searchers = [(way, _make_searcher(loaded, way)) for way in (base, *changed.values())]
    first, *others = _evaluate(loaded, questions, searchers)
    contrasts = {name: _contrast(first, other) for name, other in zip(changed, others, strict=True)}
    return {"base": _describe(first), **contrasts}


def compare_phrasings(loaded: Loaded, phrasings: Mapping[str, Sequence[str]]) -> Figures:
    """Each question with its recorded phrasings against the question alone."""
    questions = [each for each in loaded.judged.questions if each.query_id in phrasings]
    base = change_retrieval(Retrieval("hybrid", Settings()), BASE)
    alone, several = (
        PipelineSearcher(
            loaded.collection,
            base,
            embedder=loaded.embedder,
            served=Settings(),
            phrasings=known,
        )
        for known in ({}, phrasings)
    )
    first, other = _evaluate(loaded, questions, [(base, alone), (base, several)])
    return {
        "questions": len(questions),
        "base": _describe(first),
        "recorded phrasings": _contrast(first, other),
    }


def _time_reranking(folder: Path) -> Figures:
    judged = read_source(folder).judged
    rows = islice(read_objects(judged.corpus), RERANKED)
    texts = [f"{values['title']} {values['text']}" for _, values in rows]
    taken = time_cross_encoder(judged.questions[0].text, texts)
    return {"texts": len(texts), "p50_ms": taken}


def _make_searcher(loaded: Loaded, way: Retrieval) -> Searcher:
    if way.mode == "pipeline":
        return PipelineSearcher(loaded.collection, way, embedder=loaded.embedder, served=Settings())
    return NodeSearcher(loaded.collection, way, DocumentNames(loaded.collection.tenant_id))


def _evaluate(
    loaded: Loaded,
    questions: Sequence[Question],
    searchers: Sequence[tuple[Retrieval, Searcher]],
) -> list[Evaluation]:
    ids = {question.query_id for question in questions}
    judged = replace(
        loaded.judged,
        judgements={name: each for name, each in loaded.judged.judgements.items() if name in ids},
    )
    rows = [question.row for question in questions]
    embedded = EmbeddedQuestions(tuple(questions), loaded.vectors.questions[rows])
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("ask", total=len(questions))
        return evaluate(
            judged, embedded, searchers=searchers, on_progress=lambda n: progress.advance(bar, n)
        )


def _describe(evaluation: Evaluation) -> Figures:
    means: Figures = {name: round(evaluation.means[name], 4) for name in MEASURES}
    return {**means, "p50_ms": _time(evaluation)}


def _contrast(first: Evaluation, other: Evaluation) -> Figures:
    """What another way has, and its gain over the first in each measure."""
    gains = {
        name: asdict(
            compare_values(first.values[name], other.values[name], measure=name).difference
        )
        for name in MEASURES
    }
    added = round(_time(other) - _time(first), 2)
    return {**_describe(other), "gain": _round(gains), "added_p50_ms": added}


def _time(evaluation: Evaluation) -> float:
    """The median of the whole, or of the search where there is nothing else."""
    latency = evaluation.latency_ms
    return latency["total" if "total" in latency else "search"]["p50"]


def _round(gains: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {part: round(value, 4) for part, value in gain.items()}
        for name, gain in gains.items()
    }


if __name__ == "__main__":
    typer.run(main)
