"""Search, contexts and similar nodes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from service.api.access import FromAccess, SearchRoute, describe_headers
from service.api.describing import (
    describe_candidates,
    describe_hit_scores,
    describe_hits,
    describe_retrieval,
    describe_summary,
    describe_timings,
)
from service.api.models.common import DatasetName, Name, NodeId
from service.api.models.context import GivenContext, ShownBlock, ShownContext
from service.api.models.nodes import ShownSimilarNode, ShownSimilarNodes
from service.api.models.search import GivenSearch, ShownNode, ShownSearch
from service.api.retrieving import SEARCH_CHANGES, make_request, measured, record, retrieve
from service.api.state import FromServices
from service.db.context import read_nodes
from service.db.engine import tenant_transaction
from service.db.search import similar_nodes
from service.types import SearchFilters

router = APIRouter(
    prefix="/v1", tags=["search"], route_class=SearchRoute, dependencies=[Depends(describe_headers)]
)


@router.post("/search")
def search(given: GivenSearch, access: FromAccess, services: FromServices) -> ShownSearch:
    """Find nodes by keywords, meaning and links, with how sure that is."""
    request = make_request(given, access, changes=SEARCH_CHANGES)
    with measured(services, access, request, kind="search") as stopwatch:
        found = retrieve(services, request, stopwatch)
        candidates = found.retrieval.candidates
        known = record(
            services,
            access,
            found,
            kind="search",
            shown=[(each.node.node_id, each.score) for each in candidates],
            stopwatch=stopwatch,
            explain=given.explain,
        )
        summary = describe_summary(found, known, asked=given.max_results)
        return ShownSearch(
            **dict(summary),
            trace_id=str(known.trace_id),
            hits=describe_hits(found, known),
            timings=describe_timings(stopwatch),
            trace=describe_retrieval(found.retrieval) if given.explain else None,
        )


@router.post("/context")
def build_context(given: GivenContext, access: FromAccess, services: FromServices) -> ShownContext:
    """Find nodes and pack them into a token budget, ready for a prompt."""
    request = make_request(given, access)
    with measured(services, access, request, kind="context") as stopwatch:
        found = retrieve(services, request, stopwatch)
        with stopwatch.measure("pack"):
            packed = services.answerer.pack(
                found.retrieval.candidates,
                found.request,
                multi_document=found.retrieval.options.multidoc,
                budget=given.token_budget,
                tried=found.retrieval.tried_settings,
            )
        blocks = () if packed is None else packed.blocks
        known = record(
            services,
            access,
            found,
            kind="context",
            shown=[(node_id, block.score) for block in blocks for node_id in block.node_ids],
            stopwatch=stopwatch,
        )
        default_budget = given.token_budget or services.settings.context_token_budget
        return ShownContext(
            **dict(describe_summary(found, known)),
            trace_id=str(known.trace_id),
            text="" if packed is None else packed.text,
            tokens=0 if packed is None else packed.tokens,
            budget=default_budget if packed is None else packed.budget,
            blocks=[ShownBlock.model_validate(block) for block in blocks],
            candidates=describe_candidates(packed),
            timings=describe_timings(stopwatch),
            trace=describe_retrieval(found.retrieval) if given.explain else None,
        )


@router.get("/nodes/{node_id}/similar", tags=["nodes"])
def list_similar_nodes(
    node_id: Annotated[NodeId, Path()],
    *,
    access: FromAccess,
    services: FromServices,
    max_results: Annotated[int, Query(ge=1, le=100)] = 10,
    node_type: Annotated[list[Name] | None, Query(max_length=20)] = None,
    dataset_name: Annotated[DatasetName | None, Query()] = None,
) -> ShownSimilarNodes:
    """Find nodes like a stored one, by its title and its embedding."""
    tenants = [access.tenant_id]
    with tenant_transaction(services.database.engine, tenants) as connection:
        hits = similar_nodes(
            connection,
            tenants,
            node_id=node_id,
            node_types=node_type,
            top_k=max_results,
            dataset_name=dataset_name,
            filters=SearchFilters(acl_groups=access.acl_groups),
        )
        stored = read_nodes(
            connection,
            tenants,
            node_ids=[hit.node_id for hit in hits],
            acl_groups=access.acl_groups,
        )
    nodes = {each.node.node_id: each.node for each in stored}
    return ShownSimilarNodes(
        hits=[
            ShownSimilarNode(
                node=ShownNode.model_validate(nodes[hit.node_id]), scores=describe_hit_scores(hit)
            )
            for hit in hits
            if hit.node_id in nodes
        ]
    )
