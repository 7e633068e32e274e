"""BM25 statistics counted anew from the nodes, to compare with what the write path keeps."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from service.db.engine import owner_transaction
from tests.live_database import LiveDatabase


@dataclass(frozen=True, slots=True)
class Statistics:
    """N, the sum of lengths, and in how many nodes each lexeme stands."""

    documents: int
    total_length: int
    frequencies: dict[str, int]


def recount(connection: Connection, tenant: str) -> Statistics:
    """The statistics as the nodes themselves give them."""
    documents, total_length = connection.exec_driver_sql(
        """
        select
            count(*),
            coalesce(sum((
                select sum(coalesce(cardinality(u.positions), 1))
                from unnest(n.searchable_text) as u
            )), 0)
        from public.knowledge_nodes as n
        where n.tenant_id = %s and n.searchable_text is not null
        """,
        (tenant,),
    ).one()
    frequencies = connection.exec_driver_sql(
        """
        select u.lexeme, count(*)
        from public.knowledge_nodes as n, unnest(n.searchable_text) as u
        where n.tenant_id = %s
        group by u.lexeme
        """,
        (tenant,),
    )
    return Statistics(documents, int(total_length), dict(map(tuple, frequencies)))


def read_statistics(connection: Connection, tenant: str) -> Statistics:
    """The statistics as segments and postings sum up to."""
    documents, total_length = connection.exec_driver_sql(
        "select coalesce(sum(documents), 0), coalesce(sum(total_length), 0)"
        " from contextforge.segments where tenant_id = %s",
        (tenant,),
    ).one()
    frequencies = connection.exec_driver_sql(
        "select lexeme, sum(documents) from contextforge.postings where tenant_id = %s"
        " group by lexeme having sum(documents) <> 0",
        (tenant,),
    )
    return Statistics(
        int(documents), int(total_length), {lexeme: int(n) for lexeme, n in frequencies}
    )


def find_wrong_postings(connection: Connection, tenant: str) -> list[tuple[object, ...]]:
    """Postings of live nodes that are missing, superfluous, or differ from the node's own text."""
    return [
        tuple(row)
        for row in connection.exec_driver_sql(
            """
            with live as (
                select s.doc_id, s.text_length, n.searchable_text
                from public.knowledge_nodes as n
                full join contextforge.search_nodes as s
                    on s.tenant_id = n.tenant_id and s.node_id = n.node_id
                where coalesce(n.tenant_id, s.tenant_id) = %s
                    and (n.searchable_text is not null or s.node_id is not null)
            ),

            wanted as (
                select
                    live.doc_id, u.lexeme, p.tf, sum(p.tf) over (partition by live.doc_id) as len
                from live, unnest(live.searchable_text) as u,
                    lateral (select coalesce(cardinality(u.positions), 1) as tf) as p
            ),

            kept as (
                select
                    (x >> 30)::integer as doc_id, p.lexeme, ((x >> 20) & 1023)::integer as tf,
                    (x & 1048575) as len
                from contextforge.postings as p, unnest(p.packed) as x
                where p.tenant_id = %s and (x >> 30) in (select live.doc_id from live)
            )

            (select 'missing', * from wanted except all select 'missing', * from kept)
            union all
            (select 'superfluous', * from kept except all select 'superfluous', * from wanted)
            union all
            (select 'no search row', null, null, null, null from live where doc_id is null)
            union all
            (select 'no node', null, null, null, null from live where searchable_text is null)
            """,
            (tenant, tenant),
        )
    ]


def assert_consistent(database: LiveDatabase, *tenants: str) -> None:
    """Statistics and postings of each tenant equal a recount of its nodes."""
    with owner_transaction(database.admin) as connection:
        for tenant in tenants:
            assert read_statistics(connection, tenant) == recount(connection, tenant)
            assert find_wrong_postings(connection, tenant) == []


def snapshot(database: LiveDatabase, tenant: str) -> list[tuple[str, ...]]:
    """All a tenant has, row by row, to see that nothing of it changed."""
    tables = (
        "contextforge.tenant_profiles",
        "public.knowledge_nodes",
        "public.node_links",
        "contextforge.segments",
        "contextforge.postings",
        "contextforge.search_nodes",
    )
    with owner_transaction(database.admin) as connection:
        return [
            (table, str(row[0]))
            for table in tables
            for row in connection.exec_driver_sql(
                f"select to_jsonb(t) from {table} as t where tenant_id = %s order by 1", (tenant,)
            )
        ]
