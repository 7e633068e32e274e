"""The hybrid search that most users of PostgreSQL write: ts_rank_cd over GIN, HNSW, RRF, one query.

A table of its own without tenants and without row-level security, asked by a superuser on an open
connection. Terms are ORed and both legs are twice as deep as the answer, as most copies have it
(on SciFact that ranks better than 100 deep); ef_search is as large as the depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgvector import Vector
from sqlalchemy import Connection, Engine

from benchmarks.peers.asked import AskedSet, Vectors
from service.db.engine import open_engine

DATABASE = "plain"
CREATE = """
    create table documents (
        id integer primary key, name text, body text, embedding vector({dimension}),
        words tsvector generated always as (to_tsvector('english', body)) stored
    )
"""
INDEXES = (
    "create index on documents using gin (words)",
    "create index on documents using hnsw (embedding vector_cosine_ops)",
)
SEARCH = """
    with question as (
        select string_agg(quote_literal(u.lexeme), ' | ')::tsquery as query
        from unnest(to_tsvector('english', %s)) as u
    ),
    by_words as (
        select d.id, row_number() over (order by ts_rank_cd(d.words, q.query) desc, d.id) as place
        from documents as d, question as q where d.words @@ q.query
        order by place limit %s
    ),
    by_meaning as (
        select id, row_number() over (order by distance, id) as place from (
            select id, embedding <=> %b::vector as distance
            from documents order by embedding <=> %b::vector limit %s
        ) as nearest
    )
    select d.name
    from by_words as w full join by_meaning as m using (id)
    join documents as d using (id)
    order by coalesce(1.0 / (60 + w.place), 0) + coalesce(1.0 / (60 + m.place), 0) desc, id
    limit %s
"""


class PlainSql:
    """Asks the one statement on an open connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._depth = 0

    def search(self, text: str, vector: Vectors, top_k: int) -> list[str]:
        """Names of the best documents, best first."""
        depth = 2 * top_k
        if depth != self._depth:
            self._connection.exec_driver_sql(f"set hnsw.ef_search = {depth}")
            self._depth = depth
        rows = self._connection.exec_driver_sql(SEARCH, (text, depth, vector, vector, depth, top_k))
        return list(rows.scalars())


@contextmanager
def open_plain_database(admin: Engine) -> Iterator[Engine]:
    """A database beside ours with nothing but pgvector; gone afterwards."""
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"create database {DATABASE}")
    engine = open_engine(admin.url.set(database=DATABASE).render_as_string(hide_password=False))
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("create extension vector")
        engine.dispose()  # a new connection knows the type
        yield engine
    finally:
        engine.dispose()
        with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"drop database {DATABASE} with (force)")


@contextmanager
def open_plain_sql(engine: Engine, asked: AskedSet) -> Iterator[PlainSql]:
    """Load and index the documents, as a bulk load does: the indexes last."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(CREATE.format(dimension=asked.vectors.shape[1]))
        cursor = connection.connection.cursor()
        rows = zip(asked.names, asked.texts, asked.vectors, strict=True)
        with cursor.copy("copy documents (id, name, body, embedding) from stdin") as copy:
            for place, (name, text, vector) in enumerate(rows):
                copy.write_row((place, name, text, Vector(vector).to_text()))
        for statement in INDEXES:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("vacuum analyze documents")
        yield PlainSql(connection)
