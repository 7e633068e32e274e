"""The words of a query as search weighs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class TermWeight:
    """A query term over the named tenants: its idf, and their average length of a node."""

    lexeme: str
    idf: float
    average_length: float | None


def weigh_terms(
    connection: Connection, tenant_ids: Sequence[str], *, text: str, lang: str | None = None
) -> list[TermWeight]:
    """Return the terms search makes of a text, by name; none where it has no searchable word."""
    tenants = list(tenant_ids)
    rows = connection.exec_driver_sql(
        "select lexeme, idf, average from contextforge.term_weights("
        "%s, contextforge.query_lexemes(%s, %s, %s))",
        (tenants, tenants, text, lang),
    )
    return [TermWeight(*row) for row in rows]


def score_terms(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    terms: Sequence[TermWeight],
    node_ids: Sequence[int],
) -> dict[int, dict[str, float]]:
    """Return what each term adds to the BM25 of each node; nodes without any are left out."""
    if not terms:
        return {}
    rows = connection.exec_driver_sql(
        "select node_id, lexeme, score from contextforge.bm25_scores(%s, %s, %s, %s, %s)"
        " order by node_id, lexeme",
        (
            list(tenant_ids),
            list(node_ids),
            [term.lexeme for term in terms],
            [term.idf for term in terms],
            terms[0].average_length,
        ),
    )
    scored: dict[int, dict[str, float]] = {}
    for node_id, lexeme, score in rows:
        scored.setdefault(node_id, {})[lexeme] = score
    return scored
