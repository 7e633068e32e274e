"""The write path: nodes of 80 words with given 1024-d embeddings, in batches of 1,000."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.corpus import Corpus
from benchmarks.stand import BATCH, Stand, create_tenant
from service.db.engine import tenant_transaction
from service.db.nodes import upsert_nodes
from service.types import NodeDraft

WORDS = 80


def measure_upsert(stand: Stand, corpus: Corpus, *, batches: int) -> dict[str, object]:
    """Nodes per second of a first load and of the same nodes again, and their ratio."""
    create_tenant(stand, "writes")
    words = " ".join(corpus.texts[: batches * BATCH]).split()
    nodes = [_node(words, place) for place in range(batches * BATCH)]
    first = _rate(stand, corpus, nodes)
    again = _rate(stand, corpus, nodes)
    return {
        "batches": batches,
        "new_nodes_per_second": round(first),
        "unchanged_nodes_per_second": round(again),
        "unchanged_ratio": round(again / first, 1),
    }


def _node(words: list[str], place: int) -> NodeDraft:
    text = words[place * WORDS : (place + 1) * WORDS]
    return NodeDraft(f"w{place}", "section", title=" ".join(text[:5]), content=" ".join(text[5:]))


def _rate(stand: Stand, corpus: Corpus, nodes: list[NodeDraft]) -> float:
    taken = []
    for start in range(0, len(nodes), BATCH):
        embeddings = list(corpus.embeddings(start, BATCH))
        begin = time.perf_counter()
        with tenant_transaction(stand.engine, ["writes"]) as connection:
            upsert_nodes(
                connection, "writes", nodes=nodes[start : start + BATCH], embeddings=embeddings
            )
        taken.append(time.perf_counter() - begin)
    return BATCH / median(taken)
