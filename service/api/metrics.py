"""What Prometheus is told: counts, durations by step, errors, cache hits, the pool."""

from __future__ import annotations

import os
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from sqlalchemy import Engine
from sqlalchemy.pool import QueuePool

from service.db.stats import StorageGauges

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The figures of one process; several processes of a machine are added up when read."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "contextforge_requests_total",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._durations = Histogram(
            "contextforge_request_seconds",
            "How long requests take.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._steps = Histogram(
            "contextforge_step_seconds",
            "How long each step of a retrieval or an answer takes.",
            ("step",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._errors = Counter(
            "contextforge_errors_total", "Problems by code.", ("code",), registry=self._registry
        )
        self._lookups = Counter(
            "contextforge_cache_lookups_total",
            "Retrievals that were remembered (hit) or made (miss).",
            ("result",),
            registry=self._registry,
        )
        self._lost = Counter(
            "contextforge_records_lost_total",
            "Traces, questions and audits that could not be written.",
            registry=self._registry,
        )
        self._rollbacks = Counter(
            "contextforge_experiments_rolled_back_total",
            "Experiments whose variant b was stopped by a trigger.",
            registry=self._registry,
        )
        self._recall = self._make_tenant_gauge(
            "contextforge_recall", "Share of the nearest nodes that the ANN index found in audits."
        )
        self._low_recall = self._make_tenant_gauge(
            "contextforge_recall_below_limit", "1 where the recall of audits is too low."
        )
        self._segments = self._make_tenant_gauge(
            "contextforge_segments", "Segments of the keyword index."
        )
        self._postings = self._make_tenant_gauge(
            "contextforge_postings", "Postings of the keyword index, dead ones too."
        )
        self._dead_share = self._make_tenant_gauge(
            "contextforge_dead_postings_share", "Share of the postings that are dead."
        )
        self._documents = self._make_tenant_gauge(
            "contextforge_searchable_nodes", "Nodes that a search can find."
        )
        self._index_bytes = Gauge(
            "contextforge_ann_index_bytes",
            "Size of the ANN index of all tenants.",
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )
        self._pool = Gauge(
            "contextforge_pool_connections",
            "Database connections by state.",
            ("state",),
            registry=self._registry,
            multiprocess_mode="livesum",
        )

    def _make_tenant_gauge(self, name: str, meaning: str) -> Gauge:
        # Processes know of a tenant at different times: the newest figure counts.
        return Gauge(
            name, meaning, ("tenant",), registry=self._registry, multiprocess_mode="mostrecent"
        )

    def count_request(self, route: str, method: str, *, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._durations.labels(route).observe(seconds)

    def count_error(self, code: str) -> None:
        """Count a problem."""
        self._errors.labels(code).inc()

    def count_lost(self, records: int) -> None:
        """Count records that could not be written."""
        self._lost.inc(records)

    def count_rollback(self) -> None:
        """Count an experiment that was stopped by a trigger."""
        self._rollbacks.inc()

    def count_retrieval(self, timings: Mapping[str, float], *, cached: bool) -> None:
        """Count a retrieval and its steps, given in milliseconds."""
        self._lookups.labels("hit" if cached else "miss").inc()
        for step, milliseconds in timings.items():
            self._steps.labels(step).observe(milliseconds / 1000)

    def note_recall(self, tenant_id: str, recall: float, below: bool) -> None:
        """Note what audits of a tenant found."""
        self._recall.labels(tenant_id).set(recall)
        self._low_recall.labels(tenant_id).set(below)

    def note_sizes(self, gauges: StorageGauges) -> None:
        """Note how large the indexes are, and those of each tenant."""
        self._index_bytes.set(gauges.ann_index_bytes)
        for each in gauges.tenants:
            self._segments.labels(each.tenant_id).set(each.segments)
            self._postings.labels(each.tenant_id).set(each.postings)
            self._dead_share.labels(each.tenant_id).set(each.dead_share)
            self._documents.labels(each.tenant_id).set(each.documents)

    def watch_pool(self, engine: Engine) -> None:
        """Note how many connections are open and in use."""
        pool = engine.pool
        if isinstance(pool, QueuePool):
            self._pool.labels("in_use").set(pool.checkedout())
            self._pool.labels("idle").set(pool.checkedin())
            self._pool.labels("limit").set(pool.size())

    def render(self) -> bytes:
        """Return the figures as text."""
        if MULTIPROCESS in os.environ:
            together = CollectorRegistry()
            MultiProcessCollector(together)  # type: ignore[no-untyped-call]
            return generate_latest(together)
        return generate_latest(self._registry)
