"""python -m benchmarks.graph: PageRank at scale, the walk's time, and what links do for ranking.

Ranking is measured on hotpotqa, found at ../shared/data (see --data): questions that need two
linked passages. The walk's numbers were chosen on its even questions; the odd ones judge.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sqlalchemy import Connection

from benchmarks.stand import Stand, create_tenant, open_stand, time_calls, vacuum
from service.db.engine import owner_transaction, tenant_transaction
from service.db.nodes import upsert_links, upsert_nodes
from service.db.ranks import read_ranks
from service.db.search import hybrid_search_nodes
from service.embedding import FloatMatrix
from service.evaluation.beir import JudgedSet, read_objects, read_set
from service.evaluation.metrics import average, measure_rankings
from service.retrieval.graph import (
    WALK_SEEDS,
    WALK_WEIGHT,
    compute_pagerank,
    fuse_walk,
    weigh_seed,
)
from service.retrieval.ranks import refresh_ranks
from service.retrieval.walk import personalised_walk
from service.types import Hit, LinkDraft, Links, NodeDraft, ScoredNode

TENANT, LARGE = "hotpotqa", "large"
BATCH = 1000
POOL = 100
MAKE_NODES = """
    insert into knowledge_nodes (tenant_id, node_id, external_id, node_type, content_hash)
    select %s, nextval('contextforge.node_ids'), n::text, 'article', sha256('')
    from generate_series(1, %s) as n
"""
MAKE_LINKS = """
    with ids as (
        select node_id, row_number() over (order by node_id) as place
        from knowledge_nodes where tenant_id = %s
    )
    insert into node_links (tenant_id, source_id, target_id)
    select distinct %s, s.node_id, t.node_id
    from unnest(%s::integer[], %s::integer[]) as l (source, target)
    join ids as s on s.place = l.source join ids as t on t.place = l.target
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with what search found, what the walk found, and the ranks of the hits."""

    query_id: str
    hits: list[Hit]
    walked: list[ScoredNode]
    ranks: Mapping[int, float]


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets.")] = Path("../shared/data"),
    nodes: Annotated[int, typer.Option(help="Nodes of the large graph.")] = 100_000,
) -> None:
    """Measure all of it and print JSON."""
    folder = data / "hotpotqa"
    if not (folder / "corpus_minilm.npy").is_file():
        print(f"No evaluation set at {folder}.")
        raise typer.Exit(1)
    with open_stand() as stand:
        results = {
            "pagerank": measure_pagerank(stand, nodes=nodes, links=10 * nodes),
            "hotpotqa": measure_walk(stand, folder),
        }
    print(json.dumps(results, indent=2))


def measure_pagerank(stand: Stand, *, nodes: int, links: int) -> dict[str, object]:
    """Seconds to rank a random graph with hubs, alone and with reading and storing."""
    generator = np.random.default_rng(7)
    targets = np.minimum(generator.zipf(1.5, links), nodes).astype(np.int32)
    sources = generator.integers(1, nodes + 1, links, dtype=np.int32)
    begin = time.perf_counter()
    compute_pagerank(Links(sources, targets, np.ones(links)))
    computed = time.perf_counter() - begin
    create_tenant(stand, LARGE)
    with owner_transaction(stand.admin) as connection:
        connection.exec_driver_sql(MAKE_NODES, (LARGE, nodes))
        connection.exec_driver_sql(MAKE_LINKS, (LARGE, LARGE, sources.tolist(), targets.tolist()))
    vacuum(stand)
    begin = time.perf_counter()
    state = refresh_ranks(stand.engine, LARGE)
    refreshed = time.perf_counter() - begin
    return {
        "nodes": nodes,
        "links": links,
        "compute_seconds": round(computed, 3),
        "distinct_links_stored": state and state.links,
        "read_compute_store_seconds": round(refreshed, 3),
    }


def measure_walk(stand: Stand, folder: Path) -> dict[str, object]:
    """Time and ranking of the walk and of the global prior on a set with links."""
    judged = read_set(folder)
    names = _load(stand, folder)
    vectors = np.load(folder / "queries_minilm.npy").astype(np.float32)
    refresh_ranks(stand.engine, TENANT)
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        asked = _ask(connection, judged, vectors)
        walks = [
            partial(_walk, connection, each.hits, vectors[question.row])
            for each, question in zip(asked, judged.questions, strict=True)
        ]
        latency = time_calls(walks)
    even, odd = asked[0::2], asked[1::2]
    return {
        "nodes": len(names),
        "walk_ms": asdict(latency),
        "chosen_on": {name: _judge(even, judged, names, rank) for name, rank in RANKINGS.items()},
        "judged_on": {name: _judge(odd, judged, names, rank) for name, rank in RANKINGS.items()},
    }


def _rank_fused(asked: Asked) -> list[int]:
    return [hit.node_id for hit in asked.hits]


def _rank_walked(asked: Asked) -> list[int]:
    hits = [ScoredNode(hit.node_id, hit.combined_score) for hit in asked.hits]
    return [node.node_id for node in fuse_walk(hits, asked.walked, weight=WALK_WEIGHT)]


def _blend(score: Callable[[Hit], float], beta: float) -> Callable[[Asked], list[int]]:
    """Rank the hits by a score and PageRank, as rank_by_graph does."""

    def rank(asked: Asked) -> list[int]:
        blended = {
            hit.node_id: (1 - beta) * score(hit) + beta * asked.ranks.get(hit.node_id, 0.0)
            for hit in asked.hits
        }
        return sorted(blended, key=lambda node_id: (-blended[node_id], node_id))

    return rank


RANKINGS: dict[str, Callable[[Asked], list[int]]] = {
    "fused": _rank_fused,
    "walk": _rank_walked,
    "similarity alone": _blend(lambda hit: hit.vector_score or 0.0, 0.0),
    "0.7 similarity + 0.3 rank": _blend(lambda hit: hit.vector_score or 0.0, 0.3),
    "0.95 fused + 0.05 rank": _blend(lambda hit: hit.combined_score, 0.05),
    "0.7 fused + 0.3 rank": _blend(lambda hit: hit.combined_score, 0.3),
}


def _judge(
    asked: Sequence[Asked],
    judged: JudgedSet,
    names: Mapping[int, str],
    rank: Callable[[Asked], list[int]],
) -> dict[str, float]:
    rankings = {each.query_id: [names[node_id] for node_id in rank(each)] for each in asked}
    judgements = {query_id: judged.judgements[query_id] for query_id in rankings}
    values = measure_rankings(judgements, rankings)
    wanted = ("ndcg@10", "recall@10", "recall@100")
    return {name: round(average(values[name]), 4) for name in wanted}


def _ask(connection: Connection, judged: JudgedSet, vectors: FloatMatrix) -> list[Asked]:
    asked = []
    for question in judged.questions:
        vector = vectors[question.row]
        hits = hybrid_search_nodes(
            connection,
            [TENANT],
            query_text=question.text,
            query_embedding=vector,
            top_k=POOL,
        )
        ranks = read_ranks(connection, [TENANT], [hit.node_id for hit in hits])
        walked = _walk(connection, hits, vector)
        asked.append(Asked(question.query_id, hits, walked, ranks.shares))
    return asked


def _walk(connection: Connection, hits: Sequence[Hit], vector: FloatMatrix) -> list[ScoredNode]:
    seeds = {
        hit.node_id: weigh_seed(hit.vector_score, hit.combined_score) for hit in hits[:WALK_SEEDS]
    }
    return personalised_walk(connection, [TENANT], seeds, limit=POOL, query_embedding=vector)


def _load(stand: Stand, folder: Path) -> dict[int, str]:
    """Store the set with its vectors and links; return the names of its nodes."""
    create_tenant(stand, TENANT)
    rows = [values for _, values in read_objects(folder / "corpus.jsonl")]
    vectors = np.load(folder / "corpus_minilm.npy").astype(np.float32)
    names: dict[int, str] = {}
    for start in range(0, len(rows), BATCH):
        nodes = [
            NodeDraft(str(row["_id"]), "article", title=str(row["title"]), content=str(row["text"]))
            for row in rows[start : start + BATCH]
        ]
        with tenant_transaction(stand.engine, [TENANT]) as connection:
            stored = upsert_nodes(
                connection,
                TENANT,
                nodes=nodes,
                embeddings=list(vectors[start : start + BATCH]),
                embedder_version="all-MiniLM-L6-v2@53aa51172d14/384",
            )
        names |= {node.node_id: node.external_id for node in stored}
    links = [
        LinkDraft(str(row["_id"]), str(target))
        for row in rows
        for target in dict.fromkeys(_list_links(row))
    ]
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        upsert_links(connection, TENANT, links=links)
    vacuum(stand)
    return names


def _list_links(row: Mapping[str, object]) -> list[str]:
    links = row.get("links")
    return [str(link) for link in links] if isinstance(links, list) else []


if __name__ == "__main__":
    typer.run(main)
