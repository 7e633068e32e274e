"""The search function and its legs against what they replace, in one run.

Baselines: OR-ts_rank_cd over GIN, and an exact scan of the plain vector(1024) column, both as a
superuser, so without the row-level security that our side pays for.
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from rich.progress import track
from sqlalchemy import Connection

from benchmarks.corpus import Corpus, normalised
from benchmarks.stand import Latency, Stand, fill_tenant, time_queries, vacuum
from service.db.engine import plain_transaction, tenant_transaction
from service.db.search import vector_search_nodes

BM25 = "select node_id from public.bm25_search_nodes(%s, array['{tenant}'])"
VECTOR = "select node_id from public.vector_search_nodes(%b::vector, array['{tenant}'])"
HYBRID = "select node_id from public.hybrid_search_nodes(%s, %b::vector, array['{tenant}'], null)"
RANKED = """
    select node_id from public.knowledge_nodes, ({query}) as q (query)
    where tenant_id = '{tenant}' and searchable_text @@ q.query
    order by ts_rank_cd(searchable_text, q.query) desc, node_id limit 20
"""
OR_QUERY = """
    select string_agg(quote_literal(u.lexeme), ' | ')::tsquery
    from unnest(to_tsvector('english', %s)) as u
"""
PLAIN_VECTOR = """
    select node_id from public.knowledge_nodes where tenant_id = '{tenant}'
    order by embedding <=> %b::vector limit 20
"""
SIZES = """
    select c.relname, pg_total_relation_size(c.oid) as bytes
    from pg_class as c
    where c.relkind = 'r'
        and c.relnamespace in ('public'::regnamespace, 'contextforge'::regnamespace)
        and pg_total_relation_size(c.oid) > 100000
    order by 2 desc
"""


def measure_sizes(stand: Stand, corpus: Corpus, *, sizes: list[int]) -> dict[str, object]:
    """Both legs and the hybrid on one tenant of each size, and against ts_rank_cd."""
    result: dict[str, object] = {}
    for size in sizes:
        tenant = f"one-{size}"
        fill_tenant(stand, tenant, corpus=corpus, count=size)
        vacuum(stand)
        result[str(size)] = _measure_tenant(stand, corpus, tenant)
    return result


def _measure_tenant(stand: Stand, corpus: Corpus, tenant: str) -> dict[str, object]:
    texts: list[tuple[object, ...]] = [(query,) for query in corpus.queries]
    vectors: list[tuple[object, ...]] = [(row,) for row in corpus.query_vectors]
    both = [(text[0], vector[0]) for text, vector in zip(texts, vectors, strict=False)]
    with tenant_transaction(stand.engine, [tenant]) as connection:
        bm25 = time_queries(connection, BM25.format(tenant=tenant), texts)
        vector = time_queries(connection, VECTOR.format(tenant=tenant), vectors)
        hybrid = time_queries(connection, HYBRID.format(tenant=tenant), both)
    ranked = _time_ranked(stand, tenant, texts)
    return {
        "bm25_ms": asdict(bm25),
        "vector_ms": asdict(vector),
        "hybrid_ms": asdict(hybrid),
        "ts_rank_cd_ms": asdict(ranked),
        "ts_rank_cd_over_bm25": round(ranked.p50 / bm25.p50, 1),
        "hybrid_over_sum_of_legs": round(hybrid.p50 / (bm25.p50 + vector.p50), 2),
    }


def _time_ranked(stand: Stand, tenant: str, texts: list[tuple[object, ...]]) -> Latency:
    with plain_transaction(stand.admin) as connection:
        return time_queries(connection, RANKED.format(tenant=tenant, query=OR_QUERY), texts)


def measure_keywords(stand: Stand, corpus: Corpus, *, size: int) -> dict[str, object]:
    """The keyword leg alone on one very large tenant, against ts_rank_cd on the same queries."""
    tenant = f"one-{size}"
    fill_tenant(stand, tenant, corpus=corpus, count=size, vectors=False)
    vacuum(stand)
    texts: list[tuple[object, ...]] = [(query,) for query in corpus.queries]
    with tenant_transaction(stand.engine, [tenant]) as connection:
        bm25 = time_queries(connection, BM25.format(tenant=tenant), texts)
    ranked = _time_ranked(stand, tenant, texts)
    return {
        "bm25_ms": asdict(bm25),
        "ts_rank_cd_ms": asdict(ranked),
        "ts_rank_cd_over_bm25": round(ranked.p50 / bm25.p50, 1),
    }


def measure_small_tenant(stand: Stand, corpus: Corpus, *, size: int) -> dict[str, object]:
    """A tenant of some thousand nodes beside a large one, against the plain vector column."""
    tenant = f"beside-{size}"
    fill_tenant(stand, tenant, corpus=corpus, count=size)
    vacuum(stand)
    queries: list[tuple[object, ...]] = [(row,) for row in corpus.query_vectors]
    with tenant_transaction(stand.engine, [tenant]) as connection:
        ours = time_queries(connection, VECTOR.format(tenant=tenant), queries)
        recall = _recall(connection, corpus, tenant, size)
    with plain_transaction(stand.engine) as connection:
        connection.exec_driver_sql(f"set local app.tenant_ids = '{tenant}'")
        plain = time_queries(connection, PLAIN_VECTOR.format(tenant=tenant), queries)
    return {
        "vector_ms": asdict(ours),
        "plain_vector_ms": asdict(plain),
        "plain_over_ours": round(plain.p50 / ours.p50, 1),
        "recall_at_20": recall,
    }


def _recall(connection: Connection, corpus: Corpus, tenant: str, size: int) -> float:
    """Share of the 20 nearest by brute force over half-precision vectors that the leg returns."""
    halves = corpus.embeddings(0, size).astype(np.float16)
    stored = normalised(halves.astype(np.float32))
    shares = []
    for query in corpus.query_vectors:
        found = {
            hit.node_id for hit in vector_search_nodes(connection, [tenant], query_embedding=query)
        }
        names = connection.exec_driver_sql(
            "select external_id from public.knowledge_nodes"
            " where tenant_id = %s and node_id = any(%s)",
            (tenant, list(found)),
        ).scalars()
        nearest = {f"n{place}" for place in np.argsort(-(stored @ query))[:20]}
        shares.append(len(nearest & set(names)) / 20)
    return round(float(np.mean(shares)), 4)


def measure_many_tenants(
    stand: Stand, corpus: Corpus, *, tenants: int, size: int
) -> dict[str, object]:
    """A small tenant alone in the database, and with many others beside it."""
    fill_tenant(stand, "small-0", corpus=corpus, count=size, quiet=True)
    vacuum(stand)
    alone = _time_hybrid(stand, corpus, "small-0")
    for number in track(range(1, tenants), description=f"load {tenants} tenants", transient=True):
        fill_tenant(
            stand, f"small-{number}", corpus=corpus, count=size, first=number * size, quiet=True
        )
    vacuum(stand)
    beside = _time_hybrid(stand, corpus, "small-0")
    return {
        "tenants": tenants,
        "nodes_each": size,
        "alone_ms": asdict(alone),
        "beside_ms": asdict(beside),
        "beside_over_alone": round(beside.p50 / alone.p50, 2),
    }


def _time_hybrid(stand: Stand, corpus: Corpus, tenant: str) -> Latency:
    both: list[tuple[object, ...]] = list(zip(corpus.queries, corpus.query_vectors, strict=False))
    with tenant_transaction(stand.engine, [tenant]) as connection:
        return time_queries(connection, HYBRID.format(tenant=tenant), both)


def measure_bytes(stand: Stand) -> dict[str, object]:
    """Bytes per table with its indexes, and bytes per node of the search tables."""
    with plain_transaction(stand.admin) as connection:
        tables = {name: int(size) for name, size in connection.exec_driver_sql(SIZES)}
        nodes = connection.exec_driver_sql("select count(*) from knowledge_nodes").scalar_one()
        stored = connection.exec_driver_sql(
            "select sum(postings) from contextforge.segments"
        ).scalar_one()
    return {
        "nodes": nodes,
        "bytes": tables,
        "bytes_per_node": {name: round(size / nodes) for name, size in tables.items()},
        "bytes_per_posting": round(tables["postings"] / float(stored), 1),
    }
