"""What HTTP costs over the search itself, alone and with sixteen callers, on the loopback address.

Questions are embedded by the shipped model, which is what costs time, and searched by the
ready-made vectors of the corpus. No question is asked twice, so that no cache helps.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from statistics import median, quantiles
from threading import Thread
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine

from benchmarks.corpus import DIMENSION, Corpus, Matrix
from benchmarks.stand import Stand, fill_tenant, vacuum
from service.api.app import create_app
from service.api.retrieving import SEARCH_CHANGES
from service.api.server import bind_address
from service.db.database import Database
from service.db.engine import open_engine, owner_transaction
from service.db.registry import create_key
from service.embedding import Embedder, FloatVector, OnProgress
from service.pipeline import Pipeline
from service.quality.recorder import Recorder
from service.retrieval.request import RetrievalRequest
from service.settings import Settings

TENANT = "asked"
CALLERS = 16
RESULTS = 10
RECORDING_TURNS = 8
_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class CorpusEmbedder:
    """Spends what the model costs on a question, and returns the corpus's vector of it."""

    model: Embedder
    vectors: dict[str, FloatVector]
    version: str = f"corpus@1/{DIMENSION}"
    dimension: int = DIMENSION

    def embed_query(self, text: str) -> FloatVector:
        self.model.embed_query(text)
        return self.vectors[text.rpartition(" #")[0]]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> Matrix:
        return self.embed_queries(texts)


def measure_http(
    stand: Stand, corpus: Corpus, *, size: int, seconds: float, model: Embedder
) -> dict[str, object]:
    """Time one caller, then sixteen, over HTTP and in this process, in turn."""
    fill_tenant(stand, TENANT, corpus=corpus, count=size)
    vacuum(stand)
    embedder = CorpusEmbedder(model, dict(zip(corpus.queries, corpus.query_vectors, strict=False)))
    url = stand.engine.url.render_as_string(hide_password=False)
    settings = Settings(
        contextforge_rate_limit=10_000_000,  # counted, and never reached
        contextforge_rate_burst=1_000_000,
        embedding_dim=DIMENSION,
    )
    engine = open_engine(url, pool_size=settings.contextforge_pool_size, pool_timeout=30)
    try:
        app = create_app(settings, database=Database(engine, url), embedder=embedder)
        pipeline = Pipeline(engine, settings, embedder=embedder)
        with _serve(app) as port:
            key = _make_key(stand)

            def over_http(callers: int, limit: float) -> _Asked:
                return _ask_over_http(corpus, port, key, callers=callers, seconds=limit)

            def in_process(callers: int, limit: float) -> _Asked:
                return _ask_in_process(corpus, pipeline, callers=callers, seconds=limit)

            compared = _compare(over_http, in_process, seconds=seconds)
            recording = _compare_recording(app, over_http, engine=engine, seconds=seconds)
            return {**compared, "recording": recording}
    finally:
        engine.dispose()


@dataclass(frozen=True, slots=True)
class _Asked:
    milliseconds: list[float]
    seconds: float
    errors: int = 0
    work: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        return (len(self.milliseconds) - self.errors) / self.seconds

    def describe(self) -> dict[str, object]:
        parts = quantiles(self.milliseconds, n=100)
        return {
            "p50": round(median(self.milliseconds), 2),
            "p95": round(parts[94], 2),
            "p99": round(parts[98], 2),
            "calls": len(self.milliseconds),
            "per_second": round(self.rate, 1),
            "errors": self.errors,
        }


def _compare(
    over_http: Callable[[int, float], _Asked],
    in_process: Callable[[int, float], _Asked],
    *,
    seconds: float,
) -> dict[str, object]:
    over_http(1, 2)  # connections are opened and the model is warm from here on
    in_process(1, 2)
    alone, alone_inside = over_http(1, seconds / 3), in_process(1, seconds / 3)
    many, many_inside = over_http(CALLERS, seconds), in_process(CALLERS, seconds)
    besides = [all_ - work for all_, work in zip(alone.milliseconds, alone.work, strict=True)]
    return {
        "alone": alone.describe(),
        "alone_in_process": alone_inside.describe(),
        "over_embedding_and_sql_p50_ms": round(median(besides), 2),
        "callers": CALLERS,
        "together": many.describe(),
        "together_in_process": many_inside.describe(),
        "throughput_share": round(many.rate / many_inside.rate, 2),
    }


class _Forgetful(Recorder):
    """Takes records and writes none."""

    def submit(self, tenant_id: str, write: object, row: object) -> bool:
        return True


def _compare_recording(
    app: FastAPI, over_http: Callable[[int, float], _Asked], *, engine: Engine, seconds: float
) -> dict[str, object]:
    """Time one caller with the recorder and without, in short turns."""
    services = app.state.services
    without = replace(services, recorder=_Forgetful(engine, on_lost=lambda _: None))
    taken: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(2 * RECORDING_TURNS):
        # on, off, off, on: what drifts over time falls on both.
        name = "on" if turn % 4 in (0, 3) else "off"
        app.state.services = services if name == "on" else without
        taken[name] += over_http(1, seconds / RECORDING_TURNS / 2).milliseconds
    app.state.services = services
    on, off = (quantiles(taken[name], n=100)[94] for name in ("on", "off"))
    return {"p95": round(on, 2), "p95_off": round(off, 2), "p95_ratio": round(on / off, 3)}


def _ask_in_process(corpus: Corpus, pipeline: Pipeline, *, callers: int, seconds: float) -> _Asked:
    taken: list[float] = []
    end = time.perf_counter() + seconds

    def ask_in_turn() -> None:
        while (started := time.perf_counter()) < end:
            pipeline.retrieve(
                RetrievalRequest(
                    _new_question(corpus), (TENANT,), max_results=RESULTS, changes=SEARCH_CHANGES
                )
            )
            taken.append((time.perf_counter() - started) * 1000)

    started = time.perf_counter()
    with ThreadPoolExecutor(callers) as threads:
        for done in [threads.submit(ask_in_turn) for _ in range(callers)]:
            done.result()
    return _Asked(taken, time.perf_counter() - started)


def _ask_over_http(corpus: Corpus, port: int, key: str, *, callers: int, seconds: float) -> _Asked:
    enough = int(seconds * 500) + 100
    bodies = "\n".join(
        json.dumps({"query": _new_question(corpus), "max_results": RESULTS}) for _ in range(enough)
    )
    command = [sys.executable, "-m", "benchmarks.http_load", "127.0.0.1", str(port), key]
    done = subprocess.run(
        [*command, str(seconds), str(callers)],
        input=bodies,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    return _Asked(
        told["milliseconds"], told["seconds"], told["errors"], tuple(told["server_milliseconds"])
    )


def _new_question(corpus: Corpus) -> str:
    number = next(_NUMBERS)
    known = min(len(corpus.queries), len(corpus.query_vectors))
    return f"{corpus.queries[number % known]} #{number}"


def _make_key(stand: Stand) -> str:
    with owner_transaction(stand.admin) as connection:
        return create_key(connection, "bench", tenant_ids=[TENANT], scopes=["search"]).text


@contextmanager
def _serve(app: FastAPI) -> Iterator[int]:
    options: dict[str, Any] = {"log_config": None, "access_log": False, "ws": "none"}
    config = uvicorn.Config(app, host="127.0.0.1", port=0, **options)
    listening = bind_address(config)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
