"""Ingestion against the model alone, against the SQL function alone, and the memory it takes.

python -m benchmarks.ingest [--quick]. What is compared is measured in turns, part by part: a busy
moment of the machine then falls on both. Texts are SciFact's abstracts, at ../shared/data/scifact.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.ingest_memory import DIMENSION, GivenVectors
from benchmarks.stand import Stand, create_tenant, open_stand
from service.db.engine import tenant_transaction
from service.db.nodes import upsert_nodes
from service.embedding import Embedder, load_embedder, text_to_embed
from service.embedding.shipped import find_shipped_files
from service.ingestion.convert import group_rows
from service.ingestion.ingest import Ingestion
from service.ingestion.jsonl import NodeRow, read_jsonl

Work = Callable[[], object]

SCIFACT = Path("../shared/data/scifact")
_WORDS = 80
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Sizes:
    """Documents to embed, nodes with given vectors, both in so many turns; nodes for memory."""

    documents: int
    given: int
    turns: int
    memory: tuple[int, ...]


QUICK = Sizes(documents=240, given=3000, turns=3, memory=(1000, 5000))
FULL = Sizes(documents=5183, given=10_000, turns=10, memory=(5000, 50_000))


def measure_ingest(stand: Stand, *, sizes: Sizes, data: Path = SCIFACT) -> dict[str, object]:
    """Throughput with the default model and with given vectors; peak memory at each size."""
    corpus = data / "corpus.jsonl"
    if not corpus.is_file():
        return {"note": f"left out: no evaluation set at {data}"}
    result = _measure_model(stand, list(_read_rows(corpus, sizes.documents)), turns=sizes.turns)
    with tempfile.TemporaryDirectory(prefix="cf-ingest-") as place:
        files = {size: _write_nodes(Path(place), size) for size in {sizes.given, *sizes.memory}}
        result |= _measure_given(stand, files[sizes.given], sizes.given, turns=sizes.turns)
        result["peak_rss_mib"] = {
            str(size): _measure_memory(stand, files[size], size) for size in sizes.memory
        }
    return result


class _Stopwatch:
    """The time of each of several works that take turns, and how far each has come."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._done: dict[str, int] = {}

    def time(self, name: str, done: int, work: Work) -> None:
        """Do one turn of a work."""
        start = time.perf_counter()
        work()
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start
        self._done[name] = self._done.get(name, 0) + done

    def take_turns(self, works: Mapping[str, Work], done: int, *, first: int) -> None:
        """Do one turn of each; who begins changes, as who comes second finds the caches warm."""
        names = list(works)
        for place in range(len(names)):
            name = names[(first + place) % len(names)]
            self.time(name, done, works[name])

    def rate(self, name: str) -> float:
        """Done per second, over all turns."""
        return self._done[name] / self._seconds[name]


def _measure_model(stand: Stand, rows: Sequence[NodeRow], *, turns: int) -> dict[str, object]:
    """Ingestion and SentenceTransformer.encode in turns, each part of the texts by both."""
    embedder, encode, watch = load_embedder(), _load_encode(), _Stopwatch()
    texts = [text_to_embed(r.draft.title, r.draft.summary, r.draft.content) for r in rows]
    embedder.embed_documents(texts[:16])
    encode(texts[:16])
    create_tenant(stand, "ingest")
    for turn, part in enumerate(_parts(len(rows), turns)):
        some, some_texts = rows[part], texts[part]
        works: dict[str, Work] = {
            "ingest": partial(_ingest, stand, embedder, some, tenant="ingest"),
            "encode": partial(encode, some_texts),
        }
        watch.take_turns(works, len(some), first=turn)
    watch.time("again", len(rows), lambda: _ingest(stand, embedder, rows, tenant="ingest"))
    return {
        "documents": len(rows),
        "embedder": embedder.version,
        "ingest_per_second": round(watch.rate("ingest"), 1),
        "encode_per_second": round(watch.rate("encode"), 1),
        "share_of_encode": round(watch.rate("ingest") / watch.rate("encode"), 3),
        "unchanged_per_second": round(watch.rate("again")),
    }


def _measure_given(stand: Stand, path: Path, size: int, *, turns: int) -> dict[str, object]:
    """From the file to the database with given vectors, in turns with upsert_nodes alone."""
    watch = _Stopwatch()
    for tenant in ("given", "alone"):
        create_tenant(stand, tenant)
    for turn, part in enumerate(_parts(size, turns)):
        lines = _read_part(path, part)
        drafts = [row for row in read_jsonl(lines) if isinstance(row, NodeRow)]
        works: dict[str, Work] = {
            "given": partial(_ingest_lines, stand, lines),
            "alone": partial(_upsert, stand, drafts, tenant="alone"),
        }
        watch.take_turns(works, len(lines), first=turn)
    return {
        "given_vectors": size,
        "given_vectors_per_second": round(watch.rate("given")),
        "upsert_alone_per_second": round(watch.rate("alone")),
        "share_of_upsert": round(watch.rate("given") / watch.rate("alone"), 3),
    }


def _parts(size: int, turns: int) -> list[slice]:
    """The whole in as many parts of about equal size."""
    edges = [size * turn // turns for turn in range(turns + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _load_encode() -> Callable[[list[str]], object]:
    """SentenceTransformer.encode as its users call it: threads and batches by default."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_shipped_files().folder), local_files_only=True)
    return lambda texts: model.encode(texts, show_progress_bar=False)


def _ingest(stand: Stand, embedder: Embedder, rows: Sequence[NodeRow], *, tenant: str) -> None:
    report = Ingestion(stand.engine, tenant, embedder).run(group_rows("rows", rows))
    if report.rejected:
        raise RuntimeError(report.rejected[0].reason)


def _ingest_lines(stand: Stand, lines: Sequence[bytes]) -> None:
    rows = (row for row in read_jsonl(lines) if isinstance(row, NodeRow))
    report = Ingestion(stand.engine, "given", GivenVectors()).run(group_rows("rows", rows))
    if report.rejected or report.added != len(lines):
        raise RuntimeError(str(report))


def _upsert(stand: Stand, rows: Sequence[NodeRow], *, tenant: str) -> None:
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[start : start + _ROWS_AT_ONCE]
        with tenant_transaction(stand.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[row.draft for row in batch],
                embeddings=[row.embedding for row in batch],
                embedder_version=GivenVectors.version,
            )


def _read_rows(path: Path, amount: int) -> Iterator[NodeRow]:
    with path.open("rb") as lines:
        rows = (row for row in read_jsonl(lines) if isinstance(row, NodeRow))
        yield from islice(rows, amount)


def _read_part(path: Path, part: slice) -> list[bytes]:
    with path.open("rb") as lines:
        return list(islice(lines, part.start, part.stop))


def _write_nodes(folder: Path, size: int) -> Path:
    """A JSON Lines file of nodes of some 80 words with vectors, made a line at a time."""
    path = folder / f"{size}.jsonl"
    random = np.random.default_rng(size)
    words = [f"word{place}" for place in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        for place in range(size):
            # Squared, so that some words are common and most are rare.
            drawn = (random.random(_WORDS) ** 2 * len(words)).astype(int)
            vector = random.normal(size=DIMENSION).round(5)
            node = {
                "external_id": f"n{place}",
                "node_type": "section",
                "title": f"Node {place}",
                "content": " ".join(words[each] for each in drawn),
                "embedding": vector.tolist(),
            }
            file.write(json.dumps(node) + "\n")
    return path


def _measure_memory(stand: Stand, path: Path, size: int) -> float:
    """Peak memory in MiB of a process of its own that ingests the file."""
    tenant = f"memory-{size}"
    create_tenant(stand, tenant)
    url = stand.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "benchmarks.ingest_memory", tenant, str(path)]
    done = subprocess.run(command, input=url, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout)


def main(*, quick: Annotated[bool, typer.Option(help="Small sizes: a minute.")] = False) -> None:
    """Measure ingestion alone, and print JSON."""
    with open_stand() as stand:
        print(json.dumps(measure_ingest(stand, sizes=QUICK if quick else FULL), indent=2))


if __name__ == "__main__":
    typer.run(main)
