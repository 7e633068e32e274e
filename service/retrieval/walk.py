"""A walk along the links from the best hits: what they point to, and what points to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from service.db.ranks import read_neighbourhood, stand_in_nodes
from service.retrieval.graph import walk_links
from service.types import ScoredNode, SearchFilters, Vector


def personalised_walk(
    connection: Connection,
    tenant_ids: Sequence[str],
    seeds: Mapping[int, float],
    *,
    limit: int,
    query_embedding: Vector | None = None,
    node_types: Sequence[str] | None = None,
    dataset_name: str | None = None,
    filters: SearchFilters | None = None,
) -> list[ScoredNode]:
    """Return the nodes nearest to the seeds by links, best first; none where nothing is linked.

    An article that is searched by its sections is shown by the one nearest to the query. The
    filters, groups among them, hold for what is returned, as they do in search.
    """
    if not seeds:
        return []
    links = read_neighbourhood(connection, tenant_ids, node_ids=list(seeds))
    reached = walk_links(links, seeds)[: 2 * limit]
    if not reached:
        return []
    shown = stand_in_nodes(
        connection,
        tenant_ids,
        node_ids=[node.node_id for node in reached],
        query_embedding=query_embedding,
        node_types=node_types,
        dataset_name=dataset_name,
        filters=filters,
    )
    best: dict[int, float] = {}
    for node in reached:
        if node.node_id in shown:
            best.setdefault(shown[node.node_id], node.score)
    return [ScoredNode(node_id, score) for node_id, score in best.items()][:limit]
