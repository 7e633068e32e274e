"""LanceDB's hybrid search: BM25 with stemming and vectors, fused by its RRF reranker.

Its legs are as deep as the answer, so `limit` is at least 100, as deep as ours. Once with an exact
scan of the vectors, and once with the index its documentation offers for larger tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.peers.asked import AskedSet, Vectors
from benchmarks.peers.protocol import DEEP

PACKAGE = "lancedb"


class LanceSearcher:
    """A table with its full-text index, with or without one on the vectors."""

    def __init__(self, table: Any) -> None:
        from lancedb.rerankers import RRFReranker

        self._table = table
        self._reranker = RRFReranker()

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        query = self._table.search(query_type="hybrid").vector(vector).text(text)
        query = query.distance_type("cosine").rerank(self._reranker).select(["name"])
        found: list[str] = query.limit(max(top_k, DEEP)).to_arrow()["name"].to_pylist()
        return found[:top_k]


@contextmanager
def open_lance(asked: AskedSet, folder: str, *, indexed: bool = False) -> Iterator[LanceSearcher]:
    """A table on disk, its full-text index built, its vectors scanned or indexed."""
    import lancedb
    import pyarrow
    from lancedb.index import FTS, HnswSq

    flat = pyarrow.array(asked.vectors.ravel(), pyarrow.float32())
    vectors = pyarrow.FixedSizeListArray.from_arrays(flat, asked.vectors.shape[1])
    columns = {"name": list(asked.names), "text": asked.texts, "vector": vectors}
    table = lancedb.connect(folder).create_table("documents", pyarrow.table(columns))
    table.create_index("text", config=FTS())
    if indexed:
        table.create_index("vector", config=HnswSq(distance_type="cosine"))
    table.optimize()
    yield LanceSearcher(table)


@contextmanager
def open_lance_indexed(asked: AskedSet, folder: str) -> Iterator[LanceSearcher]:
    """The same with an index on the vectors."""
    with open_lance(asked, folder, indexed=True) as searcher:
        yield searcher
