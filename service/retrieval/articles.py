"""The last resort of the quality filter: whole articles where every section was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Engine

from service.db.context import read_nodes
from service.db.engine import tenant_transaction
from service.retrieval.multidoc import read_article
from service.retrieval.request import Frame
from service.types import Candidate


def restore_articles(
    candidates: Sequence[Candidate], *, engine: Engine, frame: Frame
) -> list[Candidate]:
    """Return the articles of the candidates with their own content, each once, in their order."""
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        first.setdefault(read_article(candidate), candidate)
    missing = [article for article, each in first.items() if each.node.node_id != article]
    articles = {}
    if missing:
        request = frame.request
        with tenant_transaction(engine, request.tenant_ids) as connection:
            stored = read_nodes(
                connection,
                request.tenant_ids,
                node_ids=missing,
                acl_groups=request.filters.acl_groups,
            )
        articles = {each.node.node_id: each.node for each in stored}
    restored = (
        replace(candidate, node=articles.get(article, candidate.node))
        for article, candidate in first.items()
    )
    return [candidate for candidate in restored if candidate.node.content.strip()]
