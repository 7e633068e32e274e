"""Nodes and links: read, stored, deleted."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Query

from service.api.access import FromAccess, IngestRoute, SearchRoute, describe_headers
from service.api.cursors import LONGEST, make_cursor, read_cursor
from service.api.models.common import DatasetName, Name, NodeId
from service.api.models.nodes import (
    MOST_DELETED,
    MOST_NODES,
    GivenGraph,
    GivenLinks,
    GivenNode,
    GivenNodes,
    ShownDeletedNode,
    ShownDeletedNodes,
    ShownGraph,
    ShownGraphLink,
    ShownGraphNode,
    ShownNodes,
    ShownStoredLink,
    ShownStoredLinks,
    ShownStoredNode,
    ShownStoredNodes,
)
from service.api.models.search import ShownNode
from service.api.state import FromServices
from service.db.context import read_nodes
from service.db.engine import tenant_transaction
from service.db.lookup import list_nodes
from service.db.nodes import delete_nodes, upsert_links, upsert_nodes
from service.db.ranks import read_neighbourhood
from service.errors import InvalidInput, NotFound
from service.ingestion.upsert import embed_and_upsert
from service.types import LinkDraft, NodeDraft, SearchFilters

reading = APIRouter(
    prefix="/v1", tags=["nodes"], route_class=SearchRoute, dependencies=[Depends(describe_headers)]
)
writing = APIRouter(
    prefix="/v1", tags=["nodes"], route_class=IngestRoute, dependencies=[Depends(describe_headers)]
)


@reading.get("/nodes")
def list_stored_nodes(
    *,
    access: FromAccess,
    services: FromServices,
    dataset_name: Annotated[DatasetName | None, Query()] = None,
    node_type: Annotated[list[Name] | None, Query(max_length=20)] = None,
    metadata: Annotated[
        str | None,
        Query(description="A JSON object that the node's metadata must hold.", max_length=4000),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES)] = 100,
    cursor: Annotated[str | None, Query(max_length=LONGEST)] = None,
) -> ShownNodes:
    """List nodes by node_id, a page at a time."""
    place = read_cursor(cursor, int)
    filters = SearchFilters(acl_groups=access.acl_groups, metadata=_read_metadata(metadata))
    with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
        nodes = list_nodes(
            connection,
            access.tenant_id,
            dataset_name=dataset_name,
            node_types=node_type,
            filters=filters,
            after=0 if place is None else int(place[0]),
            limit=limit + 1,
        )
    shown = nodes[:limit]
    return ShownNodes(
        nodes=[ShownNode.model_validate(node) for node in shown],
        next_cursor=make_cursor(shown[-1].node_id) if len(nodes) > limit else None,
    )


@reading.get("/nodes/{node_id}")
def read_stored_node(
    node_id: Annotated[NodeId, Path()], access: FromAccess, services: FromServices
) -> ShownNode:
    """Read one node."""
    tenants = [access.tenant_id]
    with tenant_transaction(services.database.engine, tenants) as connection:
        found = read_nodes(connection, tenants, node_ids=[node_id], acl_groups=access.acl_groups)
    if not found:
        raise NotFound(f"There is no node {node_id}.")
    return ShownNode.model_validate(found[0].node)


@writing.put("/nodes")
def store_nodes(given: GivenNodes, access: FromAccess, services: FromServices) -> ShownStoredNodes:
    """Add or change a batch of nodes: all of it, or nothing where anything is wrong."""
    drafts = [_draft(node) for node in given.nodes]
    engine = services.database.engine
    if given.embedder_version is None:
        stored = embed_and_upsert(
            engine,
            access.tenant_id,
            nodes=drafts,
            embedder=services.embedder,
            dataset_name=given.dataset_name,
        )
    else:
        with tenant_transaction(engine, [access.tenant_id]) as connection:
            stored = upsert_nodes(
                connection,
                access.tenant_id,
                nodes=drafts,
                embeddings=[
                    None if node.embedding is None else np.array(node.embedding, dtype=np.float64)
                    for node in given.nodes
                ],
                dataset_name=given.dataset_name,
                embedder_version=given.embedder_version,
            )
    return ShownStoredNodes(nodes=[ShownStoredNode.model_validate(node) for node in stored])


@writing.delete("/nodes")
def delete_stored_nodes(
    access: FromAccess,
    services: FromServices,
    external_id: Annotated[list[Name], Query(min_length=1, max_length=MOST_DELETED)],
    dataset_name: Annotated[DatasetName, Query()] = "default",
) -> ShownDeletedNodes:
    """Delete nodes by their external ids, with everything below them."""
    with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
        gone = delete_nodes(
            connection, access.tenant_id, external_ids=external_id, dataset_name=dataset_name
        )
    return ShownDeletedNodes(deleted=[ShownDeletedNode.model_validate(node) for node in gone])


@writing.post("/links")
def store_links(given: GivenLinks, access: FromAccess, services: FromServices) -> ShownStoredLinks:
    """Add or change a batch of links: all of it, or nothing where anything is wrong."""
    drafts = [LinkDraft(**link.model_dump()) for link in given.links]
    with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
        stored = upsert_links(
            connection, access.tenant_id, links=drafts, dataset_name=given.dataset_name
        )
    return ShownStoredLinks(links=[ShownStoredLink.model_validate(link) for link in stored])


@reading.post("/graph")
def read_graph(given: GivenGraph, access: FromAccess, services: FromServices) -> ShownGraph:
    """Read the links around some nodes, and how much PageRank each node has."""
    tenants = [access.tenant_id]
    with tenant_transaction(services.database.engine, tenants) as connection:
        groups = access.acl_groups
        asked = read_nodes(connection, tenants, node_ids=given.node_ids, acl_groups=groups)
        wanted = [each.node.parent_id or each.node.node_id for each in asked]
        links = read_neighbourhood(connection, tenants, node_ids=wanted)
        ends = [*wanted, *links.sources.tolist(), *links.targets.tolist()]
        nearest = list(dict.fromkeys(ends))[: given.max_nodes]
        found = read_nodes(connection, tenants, node_ids=nearest, acl_groups=groups)
        shown = {each.node.node_id: each.node for each in found}
        ranks = services.ranks.read_ranks(connection, tenants, list(shown)).shares
    return ShownGraph(
        nodes=[
            ShownGraphNode(
                node_id=node_id,
                title=node.title,
                header=node.header,
                node_type=node.node_type,
                rank=ranks.get(node_id),
                asked=node_id in wanted,
            )
            for node_id, node in shown.items()
        ],
        links=[
            ShownGraphLink(source_id=source, target_id=target, weight=weight)
            for source, target, weight in zip(
                links.sources.tolist(), links.targets.tolist(), links.weights.tolist(), strict=True
            )
            if source in shown and target in shown
        ],
    )


def _draft(node: GivenNode) -> NodeDraft:
    return NodeDraft(**node.model_dump(exclude={"embedding"}))


def _read_metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("metadata is no JSON.") from exc
    if not isinstance(metadata, dict):
        raise InvalidInput("metadata is no JSON object.")
    return metadata
