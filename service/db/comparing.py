"""What a change is tried on before it is made: real questions of a tenant, and both results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from service.db.ann_index import AnnPath
from service.types import Vector

POSITIVE_SIGNALS = ("clicked", "helpful", "cited", "answer_accepted")
# So that nobody counts for more than ten, however often a question is praised.
_MOST_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class SampledQuestion:
    """A question as it was asked, the nodes people found good, and how many people that were."""

    text: str
    liked: frozenset[int] = frozenset()
    people: int = 0


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A node that stands in for a question, by its own embedding now and after the switch."""

    node_id: int
    present: Vector
    following: Vector | None


@dataclass(frozen=True, slots=True)
class RankedPair:
    """What one question finds before and after a change, best first; exact where that is known."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    exact: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class IndexedTenant:
    """A tenant that is searched through the ANN index, and the embedder of its vectors."""

    tenant_id: str
    embedder_version: str | None


def sample_questions(connection: Connection, tenant_id: str, *, most: int) -> list[SampledQuestion]:
    """Return questions of the tenant: those people judged first, then the newest."""
    rows = connection.exec_driver_sql(
        """
        with liked as (
            select
                t.query_sha256, array_agg(distinct f.node_id) as node_ids,
                count(distinct (f.key_id, f.caller)) as people
            from public.feedback as f
            join public.traces as t on t.tenant_id = %(tenant)s and t.trace_id = f.trace_id
            where f.tenant_id = %(tenant)s
                and f.node_id is not null
                and f.signal = any(%(signals)s)
            group by t.query_sha256
        )
        select q.question, coalesce(l.node_ids, '{}'), coalesce(l.people, 0)
        from public.asked_questions as q
        left join liked as l on l.query_sha256 = q.query_sha256
        where q.tenant_id = %(tenant)s and btrim(q.question) <> ''
        order by l.query_sha256 is null, q.asked_at desc, q.query_sha256
        limit %(most)s
        """,
        {"tenant": tenant_id, "signals": list(POSITIVE_SIGNALS), "most": most},
    )
    return [
        SampledQuestion(text, frozenset(liked), min(people, _MOST_WEIGHT))
        for text, liked, people in rows
    ]


def sample_titles(connection: Connection, tenant_id: str, *, most: int) -> list[SampledQuestion]:
    """Return titles of stored nodes, the same ones each time."""
    rows = connection.exec_driver_sql(
        "select n.title from public.knowledge_nodes as n"
        " where n.tenant_id = %s and btrim(n.title) <> ''"
        " group by n.title order by md5(n.title), n.title limit %s",
        (tenant_id, most),
    ).scalars()
    return [SampledQuestion(title) for title in rows]


def sample_vectors(connection: Connection, tenant_id: str, *, most: int) -> list[StoredVector]:
    """Return embeddings of nodes that everyone may see, with what is staged in their place."""
    rows = connection.exec_driver_sql(
        "select s.node_id, s.embedding::public.vector, x.embedding"
        " from contextforge.search_nodes as s left join contextforge.next_embeddings as x"
        " on x.tenant_id = %(tenant)s and x.node_id = s.node_id"
        " where s.tenant_id = %(tenant)s and s.embedding is not null and s.acl is null"
        " order by md5(s.node_id::text), s.node_id limit %(most)s",
        {"tenant": tenant_id, "most": most},
    )
    return [StoredVector(*row) for row in rows]


def list_indexed_tenants(connection: Connection) -> list[IndexedTenant]:
    """Return who is searched through the ANN index, in order; the connection is the owner's."""
    rows = connection.exec_driver_sql(
        "select p.tenant_id, p.embedder_version from contextforge.tenant_profiles as p"
        " where exists (select from contextforge.ann_nodes as a where a.tenant_id = p.tenant_id)"
        " order by p.tenant_id"
    )
    return [IndexedTenant(*row) for row in rows]


def ann_nearest(
    connection: Connection,
    tenant_id: str,
    *,
    vectors: Sequence[Vector],
    paths: tuple[AnnPath, AnnPath],
    top_k: int,
) -> list[RankedPair]:
    """Return what each vector finds by both paths and exactly; the connection is the owner's."""
    nearest = "contextforge.ann_nearest(%s, q.embedding, %s, %s, %s, %s)"
    rows = connection.exec_driver_sql(
        f"select {nearest}, {nearest}, {nearest}"
        " from unnest(%b::public.vector[]) with ordinality as q (embedding, place)"
        " order by q.place",
        (
            *(value for path in paths for value in _list_arguments(tenant_id, top_k, path)),
            *(tenant_id, top_k, "exact", "", 0),
            list(vectors),
        ),
    )
    return [RankedPair(tuple(old), tuple(new), tuple(exact)) for old, new, exact in rows]


def compare_embedders(
    connection: Connection,
    tenant_id: str,
    *,
    texts: Sequence[str | None],
    present: Sequence[Vector],
    following: Sequence[Vector],
    top_k: int,
) -> list[RankedPair]:
    """Return what each question finds now and what it would find by the staged embeddings."""
    rows = connection.exec_driver_sql(
        "select c.old_ids, c.new_ids"
        " from unnest(%s::text[], %b::public.vector[], %b::public.vector[])"
        " with ordinality as q (question, present, following, place)"
        " cross join lateral contextforge.compare_embedders("
        "%s, q.question, q.present, q.following, %s) as c"
        " order by q.place",
        (list(texts), list(present), list(following), tenant_id, top_k),
    )
    return [RankedPair(tuple(old), tuple(new)) for old, new in rows]


def _list_arguments(tenant_id: str, top_k: int, path: AnnPath) -> tuple[str | int, ...]:
    return (tenant_id, top_k, path.method, path.operator, path.search_effort)
