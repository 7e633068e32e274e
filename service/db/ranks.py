"""Links and ranks of nodes; a Python function that calls a SQL function has its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from service.db.search import encode_filters
from service.types import Links, NodeRanks, RankedNode, RankState, SearchFilters, Vector

# A row of COPY's binary form: how many fields, then each with its length in bytes, big-endian.
_COPIED_LINK = np.dtype(
    [
        *(("fields", ">i2"), ("source_bytes", ">i4"), ("source_id", ">i4")),
        *(("target_bytes", ">i4"), ("target_id", ">i4")),
        *(("weight_bytes", ">i4"), ("weight", ">f8")),
    ]
)
_COPY_HEADER = 19
_COPY_TRAILER = 2


def read_ranks(
    connection: Connection, tenant_ids: Sequence[str], node_ids: Sequence[int]
) -> NodeRanks:
    """Return PageRank / the tenant's largest for each node; a section has its article's."""
    rows = connection.exec_driver_sql(
        "select tenant_id, node_id, rank_share, left_out from public.read_ranks(%s, %s)",
        (list(node_ids), list(tenant_ids)),
    ).all()
    return NodeRanks(
        {row.node_id: row.rank_share for row in rows if row.left_out is None},
        unranked=tuple(row.tenant_id for row in rows if row.left_out == "unranked"),
        sparse=tuple(row.tenant_id for row in rows if row.left_out == "sparse"),
    )


def store_ranks(
    connection: Connection,
    tenant_id: str,
    *,
    ranks: Mapping[int, float],
    links: int,
    seen_marks: Sequence[int],
) -> int:
    """Store the ranks of a tenant's linked nodes in place of those it had; return how many."""
    stored = connection.exec_driver_sql(
        "select public.store_ranks(%s, %s, %s, %s, %s)",
        (tenant_id, list(ranks), list(ranks.values()), links, list(seen_marks)),
    ).scalar_one()
    return int(stored)


def claim_ranks(connection: Connection, tenant_id: str) -> bool:
    """Be the only one to compute a tenant's ranks until the transaction ends; False: too late."""
    return bool(
        connection.exec_driver_sql(
            "select pg_try_advisory_xact_lock(hashtextextended('contextforge ranks ' || %s, 0))",
            (tenant_id,),
        ).scalar_one()
    )


def list_due_tenants(
    connection: Connection, tenant_ids: Sequence[str], *, older_than: timedelta
) -> list[str]:
    """Return whose ranks are missing, or older than this with links that changed since."""
    rows = connection.exec_driver_sql(
        "select t.tenant_id from unnest(%s::text[]) as t (tenant_id)"
        " left join contextforge.rank_states as s on s.tenant_id = t.tenant_id"
        " where s.tenant_id is null or s.computed_at < now() - %s::interval and exists ("
        "select from contextforge.link_marks as m where m.tenant_id = t.tenant_id)"
        " order by t.tenant_id",
        (list(tenant_ids), older_than),
    )
    return list(rows.scalars())


def list_link_marks(connection: Connection, tenant_id: str) -> list[int]:
    """Return the marks that changes of links have left; read them before the links."""
    rows = connection.exec_driver_sql(
        "select mark_id from contextforge.link_marks where tenant_id = %s order by mark_id",
        (tenant_id,),
    )
    return list(rows.scalars())


def read_rank_state(connection: Connection, tenant_id: str) -> RankState | None:
    """Return what the stored ranks were computed from; None before the first time."""
    row = connection.exec_driver_sql(
        "select tenant_id, computed_at, articles, links, linked_nodes, largest_rank"
        " from contextforge.rank_states where tenant_id = %s",
        (tenant_id,),
    ).one_or_none()
    return None if row is None else RankState(*row)


def list_top_ranks(connection: Connection, tenant_id: str, *, limit: int) -> list[RankedNode]:
    """Return the nodes with the highest ranks; best first."""
    rows = connection.exec_driver_sql(
        "select r.node_id, n.external_id, n.dataset_name, n.title, r.rank, r.computed_at"
        " from public.node_ranks as r"
        " join public.knowledge_nodes as n"
        " on n.tenant_id = r.tenant_id and n.node_id = r.node_id"
        " where r.tenant_id = %s order by r.rank desc, r.node_id limit %s",
        (tenant_id, limit),
    )
    return [RankedNode(*row) for row in rows]


def count_articles(connection: Connection, tenant_id: str) -> int:
    """Return how many nodes of a tenant are no part of another."""
    counted = connection.exec_driver_sql(
        "select count(*) from public.knowledge_nodes where tenant_id = %s and parent_id is null",
        (tenant_id,),
    ).scalar_one()
    return int(counted)


def read_links(connection: Connection, tenant_id: str) -> Links:
    """Return all links of a tenant."""
    # As rows of Python objects a million links would take longer than their ranks.
    driver = connection.connection.driver_connection
    assert driver is not None
    with (
        driver.cursor() as cursor,
        cursor.copy(
            "copy (select source_id, target_id, weight from public.node_links"
            f" where tenant_id = {_quote(connection, tenant_id)}"
            " order by source_id, target_id, link_type) to stdout (format binary)"
        ) as copied,
    ):
        copied_bytes = b"".join(copied)
    rows: NDArray[np.void] = np.frombuffer(
        copied_bytes[_COPY_HEADER:-_COPY_TRAILER], dtype=_COPIED_LINK
    )
    return Links(
        rows["source_id"].astype(np.int32),
        rows["target_id"].astype(np.int32),
        rows["weight"].astype(np.float64),
    )


def read_parents(
    connection: Connection, tenant_ids: Sequence[str], *, node_ids: Sequence[int]
) -> dict[int, int | None]:
    """Return the parent of each node that is there."""
    rows = connection.exec_driver_sql(
        "select node_id, parent_id from public.knowledge_nodes"
        " where tenant_id = any(%s) and node_id = any(%s)",
        (list(tenant_ids), list(node_ids)),
    )
    return {row.node_id: row.parent_id for row in rows}


def read_neighbourhood(
    connection: Connection, tenant_ids: Sequence[str], *, node_ids: Sequence[int]
) -> Links:
    """Return the links within two steps of some nodes; sections are linked to their articles."""
    rows = connection.exec_driver_sql(
        "select coalesce(array_agg(source_id), '{}'), coalesce(array_agg(target_id), '{}'),"
        " coalesce(array_agg(weight), '{}') from public.read_neighbourhood(%s, %s)",
        (list(node_ids), list(tenant_ids)),
    )
    sources, targets, weights = rows.one()
    return Links(
        np.array(sources, dtype=np.int32),
        np.array(targets, dtype=np.int32),
        np.array(weights, dtype=np.float64),
    )


def stand_in_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    node_ids: Sequence[int],
    query_embedding: Vector | None = None,
    node_types: Sequence[str] | None = None,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> dict[int, int]:
    """Return which node search would show for each: itself, or the section nearest to the query."""
    rows = connection.exec_driver_sql(
        "select linked_id, node_id"
        " from public.stand_in_nodes(%s, %s, %b::public.vector, %s, %s, %s)",
        (
            list(node_ids),
            list(tenant_ids),
            query_embedding,
            None if node_types is None else list(node_types),
            dataset_name,
            encode_filters(filters),
        ),
    )
    return {row.linked_id: row.node_id for row in rows}


def _quote(connection: Connection, text: str) -> str:
    return str(connection.exec_driver_sql("select quote_literal(%s)", (text,)).scalar_one())
