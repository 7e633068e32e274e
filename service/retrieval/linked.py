"""What the best hits link to, and what links to them, joins the pool as one more fused list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Engine

from service.db.candidates import Phrasing, score_candidates
from service.db.engine import tenant_transaction
from service.retrieval.graph import choose_seeds, fuse_walk
from service.retrieval.options import choose_pool
from service.retrieval.request import Frame
from service.retrieval.trace import Drop, StepResult
from service.retrieval.walk import personalised_walk
from service.types import Candidate, ScoredNode


def add_linked(
    candidates: Sequence[Candidate],
    *,
    engine: Engine,
    frame: Frame,
    phrasing: Phrasing,
    beyond: Sequence[ScoredNode] = (),
) -> StepResult:
    """Walk the links from the best candidates, fuse, and read what rises into the pool."""
    plan = frame.plan
    known = {each.node.node_id: each for each in candidates}
    most = choose_pool(frame.options, frame.request.max_results)
    with tenant_transaction(engine, plan.tenant_ids) as connection:
        walked = personalised_walk(
            connection,
            plan.tenant_ids,
            choose_seeds(candidates),
            limit=plan.top_k,
            query_embedding=phrasing.embedding,
            node_types=plan.node_types,
            dataset_name=plan.dataset_name,
            filters=plan.filters,
        )
        hits = [*(ScoredNode(each.node.node_id, each.score) for each in candidates), *beyond]
        fused = fuse_walk(hits, walked, weight=frame.options.walk_weight)
        new = [node.node_id for node in fused[:most] if node.node_id not in known]
        if new:
            read = score_candidates(connection, phrasing, plan=plan, node_ids=new)
            known |= {each.node.node_id: each for each in read}
    ranked = [
        replace(known[node.node_id], score=node.score) for node in fused if node.node_id in known
    ]
    return StepResult(
        ranked[:most],
        tuple(Drop(each.node.node_id, f"beyond the best {most}") for each in ranked[most:]),
        notes={"linked": list(new)},
    )
