"""What the pipeline costs besides embedding, SQL and the walk, and what each optional step adds.

One tenant with random links, ready-made question vectors, no Claude. The cache is off except where
it is what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.progress import track
from sqlalchemy import event

from benchmarks.corpus import DIMENSION, Corpus, Matrix
from benchmarks.stand import Latency, Stand, fill_tenant, vacuum
from service.db.engine import tenant_transaction
from service.db.nodes import upsert_links
from service.db.search import hybrid_search_nodes
from service.embedding import FloatVector, OnProgress
from service.pipeline import Pipeline, Retrieval
from service.retrieval.cache import RetrievalCache
from service.retrieval.options import LEAST_POOL, WALK_DEPTH
from service.retrieval.request import RetrievalRequest
from service.settings import Settings
from service.types import LinkDraft

LINKS_EACH = 3
WARM_UP = 10
# Off: each line below switches one of them on.
PLAIN: dict[str, object] = {"walk_weight": 0.0, "multidoc": False, "confidence_threshold": 0.0}
STEPS: dict[str, dict[str, object]] = {
    "multidoc": {"multidoc": True},
    "prior": {"graph_prior": True, "alpha": 0.9, "beta": 0.1},
    "mmr": {"reranker": "mmr"},
    "walk": {"walk_weight": 0.7},
    "three_phrasings": {"multi_query": True},
    "trace": {"trace": True},
}


@dataclass(frozen=True, slots=True)
class ReadyEmbedder:
    """Looks vectors up, so that embedding costs nothing here."""

    vectors: Mapping[str, FloatVector]
    version: str = f"ready@1/{DIMENSION}"
    dimension: int = DIMENSION

    def embed_query(self, text: str) -> FloatVector:
        return self.vectors[text]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self.vectors[text] for text in texts])

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> Matrix:
        return self.embed_queries(texts)


def measure_pipeline(stand: Stand, corpus: Corpus, *, size: int) -> dict[str, object]:
    """The bare calls, the whole pipeline, and the plain one with one step more each time.

    Every question is asked of each in turn, so that other work on the machine meets all alike.
    """
    tenant = f"piped-{size}"
    fill_tenant(stand, tenant, corpus=corpus, count=size)
    _link(stand, tenant, size=size, seed=corpus.seed)
    vacuum(stand)
    questions = list(zip(corpus.queries, corpus.query_vectors, strict=False))
    embedder = ReadyEmbedder(dict(questions))
    pipeline = _open_pipeline(stand, embedder, cache_seconds=0.0, questions=corpus.queries)
    remembering = _open_pipeline(stand, embedder, cache_seconds=600.0, questions=corpus.queries)
    open_gate: dict[str, object] = {"confidence_threshold": 0.0}
    asked = {"default": open_gate, "plain": PLAIN}
    asked |= {name: {**PLAIN, **more} for name, more in STEPS.items()}
    calls: dict[str, Callable[[str, FloatVector], object]] = {
        name: partial(_ask, pipeline, tenant, changes) for name, changes in asked.items()
    }
    calls["cached"] = partial(_ask, remembering, tenant, {})
    for depth in (LEAST_POOL, WALK_DEPTH):
        calls[f"search_{depth}"] = partial(_search, stand, tenant, depth)
    for text, vector in questions:
        calls["cached"](text, vector)
    times = _time_in_turn(calls, questions)
    with _timed_search(stand) as spent:
        besides = [_time_besides(pipeline, tenant, text, spent) for text, _ in questions]
    plain = times["plain"]
    return {
        "nodes": size,
        "default_besides_search_and_walk_ms": asdict(_latency(besides)),
        "ms": {name: asdict(latency) for name, latency in times.items()},
        "p95_over_plain": {name: round(times[name].p95 / plain.p95, 2) for name in STEPS},
    }


def _time_in_turn(
    calls: Mapping[str, Callable[[str, FloatVector], object]],
    questions: Sequence[tuple[str, FloatVector]],
) -> dict[str, Latency]:
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for place, (text, vector) in enumerate([*questions[:WARM_UP], *questions]):
        for name, call in calls.items():
            started = time.perf_counter()
            call(text, vector)
            if place >= WARM_UP:
                taken[name].append((time.perf_counter() - started) * 1000)
    return {name: _latency(values) for name, values in taken.items()}


def _time_besides(pipeline: Pipeline, tenant: str, text: str, spent: list[float]) -> float:
    """Milliseconds of a retrieval without the search statement and the walk."""
    spent.clear()
    request = RetrievalRequest(
        text, (tenant,), changes={"confidence_threshold": 0.0, "trace": True}
    )
    started = time.perf_counter()
    trace = pipeline.retrieve(request).trace
    taken = (time.perf_counter() - started) * 1000
    assert trace is not None
    walk = sum(step.milliseconds for step in trace.steps if step.step == "walk")
    return taken - sum(spent) - walk


@contextmanager
def _timed_search(stand: Stand) -> Iterator[list[float]]:
    """Collect the milliseconds that each search statement takes."""
    spent: list[float] = []
    started = [0.0]

    def before(*_: object) -> None:
        started[0] = time.perf_counter()

    def after(*event_arguments: object) -> None:
        if "hybrid_search_nodes" in str(event_arguments[2]):
            spent.append((time.perf_counter() - started[0]) * 1000)

    event.listen(stand.engine, "before_cursor_execute", before)
    event.listen(stand.engine, "after_cursor_execute", after)
    try:
        yield spent
    finally:
        event.remove(stand.engine, "before_cursor_execute", before)
        event.remove(stand.engine, "after_cursor_execute", after)


def _latency(values: Sequence[float]) -> Latency:
    return Latency(round(median(values), 3), round(quantiles(values, n=20)[-1], 3), len(values))


def _open_pipeline(
    stand: Stand, embedder: ReadyEmbedder, *, cache_seconds: float, questions: Sequence[str]
) -> Pipeline:
    return Pipeline(
        stand.engine,
        Settings(),
        embedder=embedder,
        claude=_claude_saying(questions[:2]),
        consent="key",
        cache=RetrievalCache[Retrieval](seconds=cache_seconds, most_entries=10_000),
    )


def _claude_saying(phrasings: Sequence[str]) -> Any:
    """A stand-in whose phrasings are questions with ready-made vectors."""
    text = "[" + ", ".join(f'"{phrasing}"' for phrasing in phrasings) + "]"
    reply = SimpleNamespace(content=[SimpleNamespace(text=text)], usage=None)
    return SimpleNamespace(messages=SimpleNamespace(create=lambda **_: reply))


def _link(stand: Stand, tenant: str, *, size: int, seed: int) -> None:
    targets = np.random.default_rng(seed).integers(size, size=(size, LINKS_EACH))
    links = [
        LinkDraft(f"n{source}", f"n{target}")
        for source, row in enumerate(targets)
        for target in {int(each) for each in row} - {source}
    ]
    for start in track(range(0, len(links), 5000), description="link", transient=True):
        with tenant_transaction(stand.engine, [tenant]) as connection:
            upsert_links(connection, tenant, links=links[start : start + 5000])


def _ask(
    pipeline: Pipeline, tenant: str, changes: dict[str, object], text: str, _: FloatVector
) -> object:
    return pipeline.retrieve(RetrievalRequest(text, (tenant,), changes=changes))


def _search(stand: Stand, tenant: str, depth: int, text: str, vector: FloatVector) -> object:
    with tenant_transaction(stand.engine, [tenant]) as connection:
        return hybrid_search_nodes(
            connection, [tenant], query_text=text, query_embedding=vector, top_k=depth
        )
