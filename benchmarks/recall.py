"""Recall of the vector leg against a full scan, for tenants of 0.1 % to 60 % of the rows."""

from __future__ import annotations

from dataclasses import replace

from rich.progress import track
from sqlalchemy import Connection

from benchmarks.corpus import Corpus, Matrix
from benchmarks.stand import Stand, fill_tenant, vacuum
from service.db.engine import plain_transaction, tenant_transaction
from service.db.nodes import delete_nodes, upsert_nodes
from service.db.search import explain_hybrid_search, vector_search_nodes

SHARES = {"0.1 %": 0.001, "1 %": 0.01, "9 %": 0.09, "30 %": 0.3, "60 %": 0.6}
QUERIES = 50
OTHER = 7_919
EXACT = """
    select node_id from contextforge.search_nodes
    where tenant_id = %s and embedding is not null
    order by embedding <=> l2_normalize(%b::vector)::halfvec, node_id limit 20
"""


def measure_recall(stand: Stand, corpus: Corpus, *, rows: int) -> dict[str, object]:
    """Recall@20 of each tenant when loaded, and after a fifth of its nodes changed or went."""
    sizes = {name: max(100, round(rows * share)) for name, share in SHARES.items()}
    first = 0
    for number, size in enumerate(sizes.values()):
        fill_tenant(stand, f"share-{number}", corpus=corpus, count=size, first=first)
        first += size
    vacuum(stand)
    result: dict[str, object] = {}
    first = 0
    for number, (name, size) in enumerate(sizes.items()):
        tenant = f"share-{number}"
        loaded = _recall(stand, corpus, tenant)
        _change_a_fifth(stand, corpus, tenant, first=first, size=size)
        result[name] = {
            "rows": size,
            "path": _path(stand, corpus, tenant),
            "recall_at_20": loaded,
            "recall_at_20_after_changes": _recall(stand, corpus, tenant),
        }
        first += size
    return result


def _recall(stand: Stand, corpus: Corpus, tenant: str) -> float:
    queries: Matrix = corpus.query_vectors[:QUERIES]
    shares = []
    for query in track(queries, description=f"recall {tenant}", transient=True):
        with tenant_transaction(stand.engine, [tenant]) as connection:
            hits = vector_search_nodes(connection, [tenant], query_embedding=query)
        with plain_transaction(stand.engine) as connection:
            nearest = _scan(connection, tenant, query)
        shares.append(len(nearest & {hit.node_id for hit in hits}) / len(nearest))
    return round(sum(shares) / len(shares), 4)


def _scan(connection: Connection, tenant: str, query: object) -> set[int]:
    connection.exec_driver_sql(f"set local app.tenant_ids = '{tenant}'")
    return set(connection.exec_driver_sql(EXACT, (tenant, query)).scalars())


def _change_a_fifth(stand: Stand, corpus: Corpus, tenant: str, *, first: int, size: int) -> None:
    """Give every tenth node another document's text and vector, and delete every tenth."""
    places = range(first, first + size, 10)
    for start in range(0, len(places), 500):
        batch = places[start : start + 500]
        with tenant_transaction(stand.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[
                    replace(corpus.drafts(place + OTHER, 1)[0], external_id=f"n{place}")
                    for place in batch
                ],
                embeddings=[corpus.embeddings(place + OTHER, 1)[0] for place in batch],
            )
            delete_nodes(connection, tenant, external_ids=[f"n{place + 1}" for place in batch])


def _path(stand: Stand, corpus: Corpus, tenant: str) -> str | None:
    with tenant_transaction(stand.engine, [tenant]) as connection:
        return explain_hybrid_search(
            connection, [tenant], query_embedding=corpus.query_vectors[0], top_k=1
        ).vector_path
