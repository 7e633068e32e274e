"""The recall audit: some searches through the ANN index are repeated exactly, in the background."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from service.db.audits import (
    Audit,
    AuditState,
    audit_vector_leg,
    read_audit_state,
    store_audits,
)
from service.db.candidates import read_tenant_states
from service.db.comparing import sample_questions, sample_titles, sample_vectors
from service.db.engine import tenant_transaction
from service.embedding import Embedder
from service.errors import NotFound
from service.retrieval.request import RetrievalRequest
from service.retrieval.search import check_embedder
from service.types import SearchFilters, Vector

LEAST_AUDITS = 20
REMEDY = (
    "Search harder (contextforge index --ef-search N, or --probes N), build the index anew "
    "(contextforge index --type hnsw), or search exactly (contextforge index --exact-limit N)."
)
_WARNING = f"The ANN index misses results. {REMEDY}"
_SECONDS_BETWEEN_WARNINGS = 3600.0
# An exact search of a million rows takes a few seconds; whatever takes longer is given up.
_STATEMENT_SECONDS = 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditedSearch:
    """A search as its vector leg saw it."""

    text: str
    node_types: tuple[str, ...] | None
    dataset_name: str | None
    filters: SearchFilters


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit by hand found; remedy is None where nothing is wrong."""

    tenant_id: str
    path: str
    source: str
    questions: int
    audited: int
    recall: float | None
    least_recall: float
    remedy: str | None


OnRecall = Callable[[str, float, bool], None]
"""Told the recall of a tenant, and whether it is too low."""


class Auditor:
    """Chooses searches to repeat, and repeats them where no request waits; for a Recorder."""

    def __init__(
        self, embedder: Embedder, *, share: float, least_recall: float, on_recall: OnRecall
    ) -> None:
        self._embedder = embedder
        self._share = share
        self._least_recall = least_recall
        self._on_recall = on_recall
        self._warned: dict[str, float] = {}

    def choose(self, request: RetrievalRequest, *, cached: bool) -> AuditedSearch | None:
        """Return what is to be repeated of a search; None for most of them."""
        if cached or request.keywords_only or random.random() >= self._share:
            return None
        return AuditedSearch(
            request.text,
            None if request.node_types is None else tuple(request.node_types),
            request.dataset_name,
            request.filters,
        )

    def write(
        self, connection: Connection, tenant_id: str, searches: Sequence[AuditedSearch]
    ) -> None:
        """Repeat searches of a tenant exactly, and keep how many the index found."""
        check_embedder(self._embedder, read_tenant_states(connection, [tenant_id]))
        connection.exec_driver_sql(f"set local statement_timeout = '{_STATEMENT_SECONDS}s'")
        audits = [
            audit_vector_leg(
                connection,
                [tenant_id],
                query_embedding=self._embedder.embed_query(each.text),
                node_types=each.node_types,
                dataset_name=each.dataset_name,
                filters=each.filters,
            )
            for each in searches
        ]
        if store_audits(connection, tenant_id, audits=audits):
            self._judge(tenant_id, read_audit_state(connection, tenant_id))

    def _judge(self, tenant_id: str, state: AuditState) -> None:
        if state.recall is None or state.audits < LEAST_AUDITS:
            return
        below = state.recall < self._least_recall
        self._on_recall(tenant_id, state.recall, below)
        now = time.monotonic()
        due = now - self._warned.get(tenant_id, -_SECONDS_BETWEEN_WARNINGS)
        if below and due >= _SECONDS_BETWEEN_WARNINGS:
            self._warned[tenant_id] = now
            fields = {"tenant_id": tenant_id, "recall": state.recall, "audits": state.audits}
            logger.warning(_WARNING, extra={"fields": fields})


def audit_tenant(
    engine: Engine, tenant_id: str, *, embedder: Embedder, questions: int, least_recall: float
) -> AuditReport:
    """Audit by hand, on questions that were asked, else titles, else stored vectors."""
    with tenant_transaction(engine, [tenant_id]) as connection:
        source, vectors = _sample(connection, tenant_id, embedder=embedder, most=questions)
        if not vectors:
            raise NotFound(f'Tenant "{tenant_id}" has no vector to search for.')
        audits = [
            audit_vector_leg(connection, [tenant_id], query_embedding=vector) for vector in vectors
        ]
        audited = store_audits(connection, tenant_id, audits=audits)
    recall = _measure_recall(audits)
    low = recall is not None and recall < least_recall
    return AuditReport(
        tenant_id=tenant_id,
        path=audits[0].path,
        source=source,
        questions=len(vectors),
        audited=audited,
        recall=recall,
        least_recall=least_recall,
        remedy=REMEDY if low else None,
    )


def _sample(
    connection: Connection, tenant_id: str, *, embedder: Embedder, most: int
) -> tuple[str, list[Vector]]:
    states = read_tenant_states(connection, [tenant_id])
    if not states:
        raise NotFound(f'There is no tenant "{tenant_id}".')
    if states[0].embedder_version == embedder.version:
        for source, sample in (("questions", sample_questions), ("titles", sample_titles)):
            texts = [each.text for each in sample(connection, tenant_id, most=most)]
            if texts:
                return source, list(embedder.embed_queries(texts))
    stored = sample_vectors(connection, tenant_id, most=most)
    return "vectors", [each.present for each in stored]


def _measure_recall(audits: Sequence[Audit]) -> float | None:
    expected = sum(audit.expected for audit in audits)
    return sum(audit.found for audit in audits) / expected if expected else None
