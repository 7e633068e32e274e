"""Reads for retrieval: what was found with all that is ranked by, in one round trip each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from psycopg import sql
from sqlalchemy import Connection

from service.db.search import encode_filters
from service.types import (
    Candidate,
    Experiment,
    Fusion,
    Json,
    Node,
    ScoredNode,
    SearchFilters,
    Vector,
)

_NODE_COLUMNS = ", ".join(f"n.{each.name}" for each in fields(Node))
# "limit 1" keeps the planner from joining whole tables: an index lookup for each hit it is.
_FOUND_NODE = """
    {kind} join lateral (
        select n.* from public.knowledge_nodes as n
        where {which} n.tenant_id = any(%s) and n.node_id = h.node_id
        limit 1
    ) as n on true
    left join contextforge.calibration(%s) as p on true
"""
_FOUND_VECTOR = """
    left join lateral (
        select public.halfvec_send(s.embedding) as sent
        from contextforge.search_nodes as s
        where s.tenant_id = n.tenant_id and s.node_id = n.node_id
        limit 1
    ) as v on true
"""
# Segments are counted too: one with a smaller number may be committed later.
_STATES = """
    select
        p.tenant_id, p.embedder_version, p.settings,
        array[
            (select coalesce(max(s.segment_id), 0) from contextforge.segments as s
            where s.tenant_id = p.tenant_id),
            (select count(*) from contextforge.segments as s where s.tenant_id = p.tenant_id),
            (select coalesce(max(m.mark_id), 0) from contextforge.link_marks as m
            where m.tenant_id = p.tenant_id),
            (select coalesce(extract(epoch from max(r.computed_at)) * 1e6, 0)::bigint
            from contextforge.rank_states as r where r.tenant_id = p.tenant_id)
        ],
        exists (select from public.node_links as l where l.tenant_id = p.tenant_id),
        e.tenant_id, e.experiment_id, e.name, e.share, e.settings, e.interleaved, e.started_at
    from contextforge.tenant_profiles as p
    left join public.experiments as e
        on e.tenant_id = p.tenant_id and e.tenant_id = any(%s) and e.ended_at is null
    where p.tenant_id = any(%s)
    order by p.tenant_id
"""
_SCORES = (
    "h.bm25_score, h.vector_score,"
    " contextforge.calibrate(h.vector_score, p.raw_cosines, p.calibrated_cosines)"
)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to ask, with its vector; None searches by keywords alone."""

    text: str
    embedding: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What a search asks the database for, whatever the words.

    read: how many of the hits are read as nodes, where not all.
    """

    tenant_ids: tuple[str, ...]
    node_types: tuple[str, ...] | None = None
    dataset_name: str | None = None
    filters: SearchFilters | None = None
    top_k: int = 20
    read: int | None = None
    bm25_weight: float = 0.4
    vector_weight: float = 0.6
    fusion: Fusion = "rrf"
    rrf_k: int = 60
    min_relevance: float | None = None
    with_embeddings: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What one phrasing found, best first: nodes, and hits beyond them that were not read."""

    candidates: list[Candidate]
    beyond: list[ScoredNode]


@dataclass(frozen=True, slots=True)
class TenantState:
    """What a retrieval must know of a tenant first; newest_write changes with every write.

    experiment: the one that runs, if one does.
    """

    tenant_id: str
    embedder_version: str | None
    settings: Mapping[str, Json]
    newest_write: tuple[int, ...]
    has_links: bool = True
    experiment: Experiment | None = None


def read_tenant_states(connection: Connection, tenant_ids: Sequence[str]) -> list[TenantState]:
    """Return the state of each tenant the caller may see, by name."""
    rows = connection.exec_driver_sql(_STATES, (list(tenant_ids), list(tenant_ids)))
    return [
        TenantState(
            tenant_id,
            version,
            settings,
            newest_write=tuple(newest),
            has_links=linked,
            experiment=None if experiment[0] is None else Experiment(*experiment),
        )
        for tenant_id, version, settings, newest, linked, *experiment in rows
    ]


def search_candidates(
    connection: Connection, phrasings: Sequence[Phrasing], *, plan: SearchPlan
) -> list[list[Candidate]]:
    """Run hybrid_search_nodes for each phrasing and read all it finds, best first."""
    return [found.candidates for found in search_pools(connection, phrasings, plan=plan)]


def search_pools(
    connection: Connection, phrasings: Sequence[Phrasing], *, plan: SearchPlan
) -> list[Found]:
    """Run hybrid_search_nodes for each phrasing and read the first `read` nodes of each."""
    vector, join = ("v.sent", _FOUND_VECTOR) if plan.with_embeddings else ("null", "")
    tenants = list(plan.tenant_ids)
    read = plan.top_k if plan.read is None else plan.read
    rows = connection.exec_driver_sql(
        f"select q.place, h.node_id, h.combined_score, {_SCORES}, {vector}, {_NODE_COLUMNS}"
        " from unnest(%s::text[], %b::public.vector[]) with ordinality as q (text, vector, place)"
        " cross join lateral public.hybrid_search_nodes("
        " q.text, q.vector, %s, %s, %s, %s, %s,"
        " dataset_name => %s, filters => %s, fusion => %s, rrf_k => %s, min_relevance => %s)"
        " with ordinality as h (node_id, bm25_score, vector_score, combined_score, rank)"
        f"{_FOUND_NODE.format(kind='left', which='h.rank <= %s and')}{join}"
        " order by q.place, h.rank",
        (
            [phrasing.text for phrasing in phrasings],
            [phrasing.embedding for phrasing in phrasings],
            tenants,
            None if plan.node_types is None else list(plan.node_types),
            plan.top_k,
            plan.bm25_weight,
            plan.vector_weight,
            plan.dataset_name,
            encode_filters(plan.filters),
            plan.fusion,
            plan.rrf_k,
            plan.min_relevance,
            read,
            tenants,
            tenants,
        ),
    )
    found = [Found([], []) for _ in phrasings]
    for place, node_id, *parts in rows:
        own = found[place - 1]
        if len(own.candidates) < read:
            own.candidates.append(_candidate(parts))
        else:
            own.beyond.append(ScoredNode(node_id, parts[0]))
    return found


def score_candidates(
    connection: Connection,
    phrasing: Phrasing,
    *,
    plan: SearchPlan,
    node_ids: Sequence[int],
) -> list[Candidate]:
    """Read nodes by id with the scores the question gives them, in the order of the ids."""
    vector, join = ("v.sent", _FOUND_VECTOR) if plan.with_embeddings else ("null", "")
    tenants = list(plan.tenant_ids)
    rows = connection.exec_driver_sql(
        f"select 0::double precision, {_SCORES}, {vector}, {_NODE_COLUMNS}"
        " from contextforge.score_nodes(%s, %b::public.vector, %s, %s) as h"
        f"{_FOUND_NODE.format(kind='inner', which='')}{join}",
        (phrasing.text, phrasing.embedding, tenants, list(node_ids), tenants, tenants),
    )
    known = {each.node.node_id: each for each in map(_candidate, rows)}
    return [known[node_id] for node_id in node_ids if node_id in known]


def read_titled_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    titles: Sequence[str],
    acl_groups: Sequence[str] = (),
) -> list[Node]:
    """Return the articles of these titles and all their sections, in document order."""
    lowered = [title.lower() for title in titles]
    rows = connection.exec_driver_sql(
        f"with articles as materialized ("
        " select n.node_id, n.title from public.knowledge_nodes as n"
        " where n.tenant_id = any(%s) and n.parent_id is null and lower(n.title) = any(%s)"
        " order by array_position(%s, lower(n.title)), n.node_id)"
        f" select {_NODE_COLUMNS} from articles as a"
        " join public.knowledge_nodes as n"
        " on n.tenant_id = any(%s) and (n.node_id = a.node_id or n.parent_id = a.node_id)"
        " where n.acl = '{}' or n.acl && %s::text[]"
        " order by array_position(%s, lower(a.title)), a.node_id,"
        " n.parent_id nulls first, n.order_index, n.node_id",
        (
            list(tenant_ids),
            lowered,
            lowered,
            list(tenant_ids),
            list(acl_groups),
            lowered,
        ),
    )
    return [Node(*row) for row in rows]


def describe_search(plan: SearchPlan, text: str) -> str:
    """Return the search as a statement to read or to run in psql; `:embedding` is the vector."""
    statement = sql.SQL(
        "select node_id, bm25_score, vector_score, combined_score from hybrid_search_nodes("
        "{}, :'embedding', {}, {}, {}, {}, {}, dataset_name => {}, filters => {},"
        " fusion => {}, rrf_k => {}, min_relevance => {})"
    ).format(
        sql.Literal(text),
        sql.Literal(list(plan.tenant_ids)),
        sql.Literal(None if plan.node_types is None else list(plan.node_types)),
        sql.Literal(plan.top_k),
        sql.Literal(plan.bm25_weight),
        sql.Literal(plan.vector_weight),
        sql.Literal(plan.dataset_name),
        sql.Literal(encode_filters(plan.filters)),
        sql.Literal(plan.fusion),
        sql.Literal(plan.rrf_k),
        sql.Literal(plan.min_relevance),
    )
    return statement.as_string()


def _candidate(row: Sequence[Any]) -> Candidate:
    combined, bm25, cosine, confidence, sent, *node = row
    return Candidate(
        node=Node(*node),
        score=combined,
        bm25_score=bm25,
        vector_score=cosine,
        confidence=confidence,
        combined_score=combined,
        embedding=None if sent is None else _vector(sent),
    )


def _vector(sent: bytes) -> Vector:
    """A halfvec as PostgreSQL sends it: four bytes of frame, then 16-bit floats, big-endian."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)
