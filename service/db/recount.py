"""The statistics of search against a recount of the nodes themselves, for every tenant at once."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of a tenant that is not what a recount gives."""

    tenant_id: str
    what: str
    stored: int
    recounted: int


@dataclass(frozen=True, slots=True)
class SegmentLoad:
    """How many segments and postings a tenant's keyword search reads, and how many are dead."""

    tenant_id: str
    segments: int
    postings: int
    live_postings: int

    @property
    def dead_share(self) -> float:
        """Return the share of postings that belong to no live text."""
        return 1 - self.live_postings / self.postings if self.postings else 0.0


# Each is one statement, hence one snapshot: writers in between cannot make a false difference.
_TOTALS = """
    with stored as (
        select
            tenant_id, sum(documents) as documents, sum(total_length) as length,
            sum(live_postings) as live_postings
        from contextforge.segments
        group by tenant_id
    ),

    searched as (
        select tenant_id, count(*) as documents, sum(text_length) as length
        from contextforge.search_nodes
        group by tenant_id
    ),

    texts as (
        select tenant_id, sum(length(searchable_text)) as live_postings
        from public.knowledge_nodes
        group by tenant_id
    )

    select tenant_id, figure.what, figure.stored::bigint, figure.recounted::bigint
    from stored full join searched using (tenant_id) full join texts using (tenant_id)
    cross join lateral (
        values
            ('documents', coalesce(stored.documents, 0), coalesce(searched.documents, 0)),
            ('total length', coalesce(stored.length, 0), coalesce(searched.length, 0)),
            (
                'postings said to be live', coalesce(stored.live_postings, 0),
                coalesce(texts.live_postings, 0)
            )
    ) as figure (what, stored, recounted)
    where figure.stored <> figure.recounted
    order by 1, 2
"""

_FREQUENCIES = """
    with stored as (
        select tenant_id, lexeme, sum(documents) as documents
        from contextforge.postings
        group by tenant_id, lexeme
    ),

    live as (
        select n.tenant_id, u.lexeme collate "C" as lexeme, count(*) as documents
        from public.knowledge_nodes as n
        cross join lateral unnest(n.searchable_text) as u
        group by n.tenant_id, u.lexeme collate "C"
    )

    select
        tenant_id, 'document frequency of "' || min(lexeme) || '" and ' || count(*) - 1 || ' more',
        (array_agg(coalesce(stored.documents, 0) order by lexeme))[1]::bigint,
        (array_agg(coalesce(live.documents, 0) order by lexeme))[1]::bigint
    from stored full join live using (tenant_id, lexeme)
    where coalesce(stored.documents, 0) <> coalesce(live.documents, 0)
    group by tenant_id
    order by tenant_id
"""

_LIVE_POSTINGS = """
    with stored as (
        select p.tenant_id, count(*) as postings
        from contextforge.postings as p
        cross join lateral unnest(p.packed) as u (posting)
        join contextforge.search_nodes as s
            on s.tenant_id = p.tenant_id and s.doc_id = (u.posting >> 30)::integer
        group by p.tenant_id
    ),

    live as (
        select tenant_id, sum(length(searchable_text)) as postings
        from public.knowledge_nodes
        group by tenant_id
    )

    select
        tenant_id, 'live postings', coalesce(stored.postings, 0)::bigint,
        coalesce(live.postings, 0)::bigint
    from stored full join live using (tenant_id)
    where coalesce(stored.postings, 0) <> coalesce(live.postings, 0)
    order by tenant_id
"""

_SEARCH_NODES = """
    select
        tenant_id, 'nodes in search', count(s.node_id), count(n.searchable_text)
    from public.knowledge_nodes as n
    full join contextforge.search_nodes as s using (tenant_id, node_id)
    where (s.node_id is null) <> (n.searchable_text is null)
        or s.article_id <> coalesce(n.parent_id, n.node_id)
    group by tenant_id
    order by tenant_id
"""

_PARENTS = """
    select n.tenant_id, 'nodes with a parent that is gone', count(*), 0
    from public.knowledge_nodes as n
    where n.parent_id is not null
        and not exists (
            select from public.knowledge_nodes as p
            where p.tenant_id = n.tenant_id and p.node_id = n.parent_id
        )
    group by n.tenant_id
    order by n.tenant_id
"""

_LOADS = """
    select tenant_id, count(*), sum(postings)::bigint, sum(live_postings)::bigint
    from contextforge.segments
    group by tenant_id
    order by tenant_id
"""


def recount_statistics(connection: Connection) -> list[Difference]:
    """Return every figure of the keyword search that differs from a recount, by tenant."""
    return _compare(connection, (_TOTALS, _FREQUENCIES, _LIVE_POSTINGS))


def recount_nodes(connection: Connection) -> list[Difference]:
    """Return where the private search tables and the nodes do not match, by tenant."""
    return _compare(connection, (_SEARCH_NODES, _PARENTS))


def measure_segments(connection: Connection) -> list[SegmentLoad]:
    """Return what each tenant's keyword search has to read."""
    return [SegmentLoad(*row) for row in connection.exec_driver_sql(_LOADS)]


def _compare(connection: Connection, statements: tuple[str, ...]) -> list[Difference]:
    return [
        Difference(*row)
        for statement in statements
        for row in connection.exec_driver_sql(statement)
    ]
