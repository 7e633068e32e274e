"""A process of its own that ingests a file and prints its peak memory: see benchmarks.ingest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from service.db.engine import open_engine
from service.embedding import FloatMatrix
from service.ingestion.convert import group_rows
from service.ingestion.ingest import Ingestion
from service.ingestion.jsonl import NodeRow, read_jsonl

DIMENSION = 384


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


def ingest_alone(tenant: str, path: Path) -> float:
    """Ingest a file and return the peak memory of this process in MiB."""
    # Through standard input: arguments are seen by every user of the machine.
    engine = open_engine(sys.stdin.read().strip())
    with path.open("rb") as lines:
        rows = (row for row in read_jsonl(lines) if isinstance(row, NodeRow))
        report = Ingestion(engine, tenant, GivenVectors()).run(group_rows(path.name, rows))
    engine.dispose()
    if report.rejected:
        raise RuntimeError(report.rejected[0].reason)
    # Not getrusage: its figure begins with that of the process this one was forked from.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return round(int(peak.split()[1]) / 1024, 1)


if __name__ == "__main__":
    print(ingest_alone(sys.argv[1], Path(sys.argv[2])))
