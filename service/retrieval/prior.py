"""The global prior: articles that many others link to stand a little higher."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine

from service.db.engine import tenant_transaction
from service.retrieval.graph import rank_by_graph
from service.retrieval.ranks import RankMemory
from service.retrieval.request import Frame
from service.retrieval.trace import StepResult
from service.types import Candidate


def blend_ranks(
    candidates: Sequence[Candidate], *, engine: Engine, frame: Frame, memory: RankMemory
) -> StepResult:
    """Reorder by alpha * similarity + beta * PageRank; without enough links all stay as found."""
    tenant_ids = frame.request.tenant_ids
    node_ids = [each.node.node_id for each in candidates]
    with tenant_transaction(engine, tenant_ids) as connection:
        ranks = memory.read_ranks(connection, tenant_ids, node_ids)
    options = frame.options
    blended = rank_by_graph(
        candidates,
        ranks.shares,
        alpha=options.alpha,
        beta=options.beta,
        basis=options.graph_basis,
    )
    return StepResult(
        blended,
        notes={
            "alpha": options.alpha,
            "beta": options.beta,
            "unranked": list(ranks.unranked),
            "sparse": list(ranks.sparse),
        },
    )
