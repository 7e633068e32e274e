"""Ingestion against the model alone, with given vectors, and the memory it takes.

Texts are SciFact's abstracts, found at ../shared/data/scifact.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.stand import Stand, create_tenant
from service.db.engine import open_engine
from service.embedding import Embedder, FloatMatrix, load_embedder, text_to_embed
from service.embedding.shipped import find_shipped_files
from service.ingestion.convert import group_rows
from service.ingestion.ingest import Ingestion
from service.ingestion.jsonl import NodeRow, read_jsonl

SCIFACT = Path("../shared/data/scifact")
DIMENSION = 384
_WORDS = 80


@dataclass(frozen=True, slots=True)
class Sizes:
    """Documents to embed, texts of them for the slower encode, nodes with given vectors."""

    documents: int
    encoded: int
    given: int
    memory: tuple[int, ...]


QUICK = Sizes(documents=200, encoded=50, given=1000, memory=(1000, 5000))
FULL = Sizes(documents=1000, encoded=200, given=5000, memory=(5000, 50_000))


class GivenVectors:
    """Stands where a model would; rows that bring their vectors never ask it."""

    version = f"given@1/{DIMENSION}"
    dimension = DIMENSION

    def embed_query(self, text: str) -> FloatMatrix:
        raise NotImplementedError

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        raise NotImplementedError

    def embed_documents(self, texts: Sequence[str], on_progress: object = None) -> FloatMatrix:
        raise NotImplementedError


def measure_ingest(
    stand: Stand,
    *,
    sizes: Sizes,
    data: Path = SCIFACT,
) -> dict[str, object]:
    """Throughput with the default model and with given vectors; peak memory at each size."""
    corpus = data / "corpus.jsonl"
    if not corpus.is_file():
        return {"note": f"left out: no evaluation set at {data}"}
    rows = list(_read_rows(corpus, sizes.documents))
    result = _measure_model(stand, rows, encoded=sizes.encoded)
    with tempfile.TemporaryDirectory(prefix="cf-ingest-") as place:
        files = {size: _write_nodes(Path(place), size) for size in {sizes.given, *sizes.memory}}
        result["given_vectors_nodes_per_second"] = _measure_given(
            stand, files[sizes.given], sizes.given
        )
        result["peak_rss_mib"] = {
            str(size): _measure_memory(stand, files[size], size) for size in sizes.memory
        }
    return result


def _read_rows(path: Path, count: int) -> Iterator[NodeRow]:
    with path.open("rb") as lines:
        rows = (row for row in read_jsonl(lines) if isinstance(row, NodeRow))
        yield from islice(rows, count)


def _texts(rows: Iterable[NodeRow]) -> list[str]:
    return [text_to_embed(r.draft.title, r.draft.summary, r.draft.content) for r in rows]


def _rate(count: int, work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - start), 1)


def _measure_model(stand: Stand, rows: Sequence[NodeRow], *, encoded: int) -> dict[str, object]:
    """Ingestion beside the same embedder on the same texts, then what is unchanged."""
    embedder, texts = load_embedder(), _texts(rows)
    embedder.embed_documents(texts[:16])
    create_tenant(stand, "ingest")
    raw = _rate(len(rows), lambda: embedder.embed_documents(texts))
    ours = _rate(len(rows), lambda: _ingest(stand, embedder, rows, tenant="ingest"))
    again = _rate(len(rows), lambda: _ingest(stand, embedder, rows, tenant="ingest"))
    encode = _measure_encode(texts[:encoded])
    return {
        "documents": len(rows),
        "embedder": embedder.version,
        "ingest_per_second": ours,
        "embed_documents_per_second": raw,
        "share_of_embed_documents": round(ours / raw, 3),
        "encode_per_second": encode,
        "share_of_encode": round(ours / encode, 3),
        "unchanged_per_second": again,
    }


def _measure_encode(texts: list[str]) -> float:
    """SentenceTransformer.encode on the same texts, as its users call it: threads by default."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_shipped_files().folder), local_files_only=True)
    model.encode(texts[:16], show_progress_bar=False)
    return _rate(len(texts), lambda: model.encode(texts, show_progress_bar=False))


def _ingest(stand: Stand, embedder: Embedder, rows: Iterable[NodeRow], *, tenant: str) -> None:
    report = Ingestion(stand.engine, tenant, embedder).run(group_rows("rows", rows))
    if report.rejected:
        raise RuntimeError(report.rejected[0].reason)


def _write_nodes(folder: Path, count: int) -> Path:
    """A JSON Lines file of nodes of some 80 words with vectors, made a line at a time."""
    path = folder / f"{count}.jsonl"
    random = np.random.default_rng(count)
    words = [f"word{place}" for place in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        for place in range(count):
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


def _measure_given(stand: Stand, path: Path, count: int) -> float:
    """Nodes per second from the file to the database, vectors given."""
    create_tenant(stand, "given")
    rows = _read_rows(path, count)
    return _rate(count, lambda: _ingest(stand, GivenVectors(), rows, tenant="given"))


def _measure_memory(stand: Stand, path: Path, count: int) -> float:
    """Peak memory in MiB of a process of its own that ingests the file."""
    tenant = f"memory-{count}"
    create_tenant(stand, tenant)
    url = stand.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "benchmarks.ingest", tenant, str(path)]
    # The address goes through standard input: arguments are seen by every user of the machine.
    done = subprocess.run(command, input=url, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout)


def _ingest_alone(tenant: str, path: Path) -> float:
    """Ingest a file and return the peak memory of this process in MiB."""
    engine = open_engine(sys.stdin.read().strip())
    with path.open("rb") as lines:
        rows = (row for row in read_jsonl(lines) if isinstance(row, NodeRow))
        Ingestion(engine, tenant, GivenVectors()).run(group_rows(path.name, rows))
    engine.dispose()
    # Not getrusage: its figure begins with that of the process this one was forked from.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return round(int(peak.split()[1]) / 1024, 1)


if __name__ == "__main__":
    print(_ingest_alone(sys.argv[1], Path(sys.argv[2])))
