"""langchain-postgres' hybrid search: its own tables with HNSW and GIN, both legs 100 deep, RRF.

The database to use stands in PEER_DATABASE_URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from benchmarks.peers.asked import AskedSet, Vectors
from benchmarks.peers.protocol import DEEP

PACKAGE = "langchain_postgres"
TABLE = "documents_of_langchain"
BATCH = 1000


class GivenEmbeddings:
    """Stands where a model would: every question brings its vector."""

    vector: Vectors

    def embed_query(self, text: str) -> list[float]:
        given: list[float] = self.vector.tolist()
        return given

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError


class LangchainSearcher:
    """Asks the vector store as its documentation shows."""

    def __init__(self, store: Any, embeddings: GivenEmbeddings) -> None:
        self._store = store
        self._embeddings = embeddings

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        self._embeddings.vector = vector
        # A new one each time: the store would keep the words of the first question for all.
        config = _describe_search(text)
        found = self._store.similarity_search(text, k=top_k, hybrid_search_config=config)
        return [document.metadata["name"] for document in found]


@contextmanager
def open_langchain(asked: AskedSet, folder: str) -> Iterator[LangchainSearcher]:  # noqa: ARG001
    """Load the documents through the library, then build both indexes."""
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import HNSWIndex

    engine = PGEngine.from_connection_string(os.environ["PEER_DATABASE_URL"])
    config = _describe_search("")
    engine.init_vectorstore_table(TABLE, asked.vectors.shape[1], hybrid_search_config=config)
    embeddings = GivenEmbeddings()
    store = PGVectorStore.create_sync(engine, embeddings, TABLE, hybrid_search_config=config)
    texts = asked.texts
    for start in range(0, len(texts), BATCH):
        part = slice(start, start + BATCH)
        store.add_embeddings(
            texts[part],
            asked.vectors[part].tolist(),
            metadatas=[{"name": name} for name in asked.names[part]],
            ids=[str(uuid5(NAMESPACE_OID, name)) for name in asked.names[part]],
        )
    store.apply_vector_index(HNSWIndex())
    store.apply_hybrid_search_index()
    yield LangchainSearcher(store, embeddings)


def _describe_search(words: str) -> Any:
    from langchain_postgres.v2.hybrid_search_config import (
        HybridSearchConfig,
        reciprocal_rank_fusion,
    )

    return HybridSearchConfig(
        tsv_column="content_tsv",
        fts_query=words,
        fusion_function=reciprocal_rank_fusion,
        primary_top_k=DEEP,
        secondary_top_k=DEEP,
    )
