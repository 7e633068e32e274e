"""What evaluation asks of the database, always of one tenant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from service.types import Vector


@dataclass(frozen=True, slots=True)
class NodeScores:
    """A node with both of its scores for a query; no cosine without an embedding."""

    node_id: int
    bm25_score: float
    vector_score: float | None


def score_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    query_text: str,
    query_embedding: Vector,
    node_ids: Sequence[int],
) -> list[NodeScores]:
    """Return both scores of given nodes, as hybrid_search_nodes computes them."""
    rows = connection.exec_driver_sql(
        "select node_id, bm25_score, vector_score"
        " from contextforge.score_nodes(%s, %b::public.vector, %s, %s)",
        (query_text, query_embedding, [tenant_id], list(node_ids)),
    )
    return [NodeScores(*row) for row in rows]


def calibrate_cosines(
    connection: Connection, tenant_id: str, *, cosines: Sequence[float]
) -> list[float]:
    """Return cosines on the calibrated scale of the tenant's embedder."""
    rows = connection.exec_driver_sql(
        "select contextforge.calibrate(u.cosine, c.raw_cosines, c.calibrated_cosines)"
        " from unnest(%s::double precision[]) with ordinality as u (cosine, place)"
        " left join contextforge.calibration(%s) as c on true order by u.place",
        (list(cosines), [tenant_id]),
    )
    return [float(value) for value in rows.scalars()]


def name_documents(
    connection: Connection, tenant_id: str, *, node_ids: Iterable[int]
) -> dict[int, str]:
    """Return the external id of each node, of its article where it is a section."""
    rows = connection.exec_driver_sql(
        "select n.node_id, case when n.node_type = 'section' then a.external_id"
        " else n.external_id end"
        " from public.knowledge_nodes as n left join public.knowledge_nodes as a"
        " on a.tenant_id = n.tenant_id and a.node_id = n.parent_id"
        " where n.tenant_id = %s and n.node_id = any(%s)",
        (tenant_id, list(node_ids)),
    )
    return {row[0]: row[1] for row in rows}


def list_example_questions(connection: Connection, tenant_id: str) -> list[str]:
    """Return the questions of the tenant's few-shot examples."""
    rows = connection.exec_driver_sql(
        "select n.title from public.knowledge_nodes as n"
        " where n.tenant_id = %s and n.node_type = 'qa_example' order by n.node_id",
        (tenant_id,),
    )
    return list(rows.scalars())


def count_nodes(connection: Connection, tenant_id: str) -> int:
    """Return how many nodes of the tenant search can find."""
    found = connection.exec_driver_sql(
        "select count(*) from contextforge.search_nodes as s where s.tenant_id = %s", (tenant_id,)
    ).scalar_one()
    return int(found)


def read_embedder_version(connection: Connection, tenant_id: str) -> str | None:
    """Return the embedder the tenant's vectors are of; None where it has none yet."""
    found = connection.exec_driver_sql(
        "select p.embedder_version from contextforge.tenant_profiles as p where p.tenant_id = %s",
        (tenant_id,),
    ).scalar_one_or_none()
    return None if found is None else str(found)
