"""This hybrid search, plain SQL and the peers, one after the other on the same set.

Every system gets the same documents, questions and vectors, and is asked from Python. Peers run in
a process of their own, in the interpreter of --peers-python; one that is absent is said to be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from sqlalchemy import Engine

from benchmarks.peers.__main__ import PEERS
from benchmarks.peers.asked import AskedSet, write_asked
from benchmarks.peers.ours import TransactionSearcher, Way, load_tenant, open_ours
from benchmarks.peers.plain_sql import open_plain_database, open_plain_sql
from benchmarks.peers.protocol import DEEP, TOP_K, Answers, Searcher, ask_all
from benchmarks.peers.sets import ContestSet
from benchmarks.stand import Stand
from service.evaluation.compare import compare_values
from service.evaluation.metrics import average, measure_rankings

FUSIONS = ("ContextForge rrf", "ContextForge convex")
WAYS = {
    "ContextForge rrf": Way(),
    "ContextForge convex": Way("convex"),
    "ContextForge rrf, equal weights": Way(bm25_weight=0.5, vector_weight=0.5),
    "ContextForge keywords alone": Way(vector_weight=0.0),
    "ContextForge vectors alone": Way(bm25_weight=0.0),
}
OWN_TRANSACTION = "ContextForge rrf, a transaction each"
PLAIN_SQL = "plain SQL"
ROOT = Path(__file__).resolve().parents[2]

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """One system's answers at each depth, or why there are none; and our p50 right after it."""

    load_seconds: float = 0.0
    answers: Mapping[int, Answers] | None = None
    version: str | None = None
    absent: str | None = None
    ours_ms: float = 0.0


def measure_hybrid(
    stand: Stand, contest: ContestSet, *, peers_python: Path | None
) -> dict[str, object]:
    """Time of every system on one set, its ratio to ours, and its quality."""
    entries = dict(_run_all(stand, contest, peers_python=peers_python or Path(sys.executable)))
    return {
        "documents": len(contest.asked.names),
        "questions": len(contest.asked.questions),
        "judged_questions": len(contest.judgements),
        "top_k": TOP_K,
        "systems": {name: _describe(each) for name, each in entries.items()},
        "quality": _judge_all(contest, entries),
    }


def _run_all(
    stand: Stand, contest: ContestSet, *, peers_python: Path
) -> Iterator[tuple[str, Entry]]:
    tenant, asked = f"contest-{contest.name}", contest.asked
    start = time.perf_counter()
    with console.status(f"{contest.name}: loading"):
        names = load_tenant(stand, tenant, asked)
    loaded = round(time.perf_counter() - start, 1)

    def run_ours(way: Way) -> Entry:
        with open_ours(stand, tenant, way=way, names=names) as searcher:
            return Entry(loaded, _ask(searcher, asked))

    def time_ours() -> float:
        with open_ours(stand, tenant, way=Way(), names=names) as searcher:
            return ask_all(searcher, asked, top_k=TOP_K).p50_ms

    for name, way in WAYS.items():
        console.print(f"{contest.name}: {name}")
        yield name, replace(run_ours(way), ours_ms=time_ours())
    alone = TransactionSearcher(stand.engine, tenant, names)
    yield OWN_TRANSACTION, replace(Entry(loaded, _ask(alone, asked)), ours_ms=time_ours())
    for name, entry in _run_others(stand, contest, peers_python=peers_python):
        yield name, replace(entry, ours_ms=time_ours())


def _run_others(
    stand: Stand, contest: ContestSet, *, peers_python: Path
) -> Iterator[tuple[str, Entry]]:
    with open_plain_database(stand.admin) as engine:
        console.print(f"{contest.name}: {PLAIN_SQL}")
        yield PLAIN_SQL, _run_plain_sql(engine, contest.asked)
        with _handed_over(contest.asked) as folder:
            for name in PEERS:
                console.print(f"{contest.name}: {name}")
                yield name, _run_peer(name, folder, python=peers_python, engine=engine)


def _run_plain_sql(engine: Engine, asked: AskedSet) -> Entry:
    start = time.perf_counter()
    with open_plain_sql(engine, asked) as searcher:
        loaded = round(time.perf_counter() - start, 1)
        return Entry(loaded, _ask(searcher, asked))


def _run_peer(name: str, folder: Path, *, python: Path, engine: Engine) -> Entry:
    """One peer in its own process; its failure is a result, not the end of the run."""
    url = engine.url.set(drivername="postgresql+psycopg")
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PEER_DATABASE_URL": url.render_as_string(hide_password=False),
        "HF_HUB_OFFLINE": "1",
    }
    command = [str(python), "-m", "benchmarks.peers", name, str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=folder
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Entry(absent=f"failed: {reason[:200]}")
    # A library may print before the last line, which is ours.
    read = json.loads(done.stdout.splitlines()[-1])
    if "absent" in read:
        return Entry(absent=read["absent"])
    answers = {int(depth): Answers(**each) for depth, each in read["answers"].items()}
    return Entry(read["load_seconds"], answers, version=read["version"])


def _ask(searcher: Searcher, asked: AskedSet) -> dict[int, Answers]:
    return {depth: ask_all(searcher, asked, top_k=depth) for depth in (TOP_K, DEEP)}


@contextmanager
def _handed_over(asked: AskedSet) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cf-contest-") as place:
        write_asked(asked, Path(place))
        yield Path(place)


def _describe(entry: Entry) -> dict[str, object]:
    if entry.answers is None:
        return {"absent": entry.absent}
    timed = entry.answers[TOP_K]
    described: dict[str, object] = {
        "p50_ms": timed.p50_ms,
        "p95_ms": timed.p95_ms,
        # What is compared is measured one after the other: a busy hour then falls on both.
        "ours_beside_ms": entry.ours_ms,
        "over_ours": round(timed.p50_ms / entry.ours_ms, 2),
        "top_100_p50_ms": entry.answers[DEEP].p50_ms,
        "load_seconds": entry.load_seconds,
    }
    return described | ({"version": entry.version} if entry.version else {})


def _judge_all(contest: ContestSet, entries: Mapping[str, Entry]) -> dict[str, object]:
    """nDCG@10 of what was timed, recall@100 of the deep answers, and the difference from ours."""
    values = {
        name: {depth: _judge(contest, each) for depth, each in entry.answers.items()}
        for name, entry in entries.items()
        if entry.answers is not None
    }
    return {
        name: {
            "ndcg@10": round(average(found[TOP_K]["ndcg@10"]), 4),
            "recall@100": round(average(found[DEEP]["recall@100"]), 4),
            "ours_minus_it": {
                fusion: _compare(found[TOP_K]["ndcg@10"], values[fusion][TOP_K]["ndcg@10"])
                for fusion in FUSIONS
            },
        }
        for name, found in values.items()
    }


def _judge(contest: ContestSet, answers: Answers) -> dict[str, dict[str, float]]:
    found = zip(contest.query_ids, answers.rankings, strict=True)
    rankings = {query_id: ranking for query_id, ranking in found if query_id in contest.judgements}
    return measure_rankings(contest.judgements, rankings)


def _compare(theirs: Mapping[str, float], ours: Mapping[str, float]) -> dict[str, float]:
    """The mean difference in nDCG@10, its interval, and the chance of it among equals."""
    found = compare_values(theirs, ours, measure="ndcg@10").difference
    return {
        "mean": round(found.mean, 4),
        "low": round(found.low, 4),
        "high": round(found.high, 4),
        "p_value": round(found.p_value, 4),
    }
