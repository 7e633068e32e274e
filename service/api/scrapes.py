"""What is looked up for a scrape of /metrics, once a minute at most."""

from __future__ import annotations

import logging
import time
from threading import Lock

from sqlalchemy import Engine

from service.api.metrics import Metrics
from service.db.engine import tenant_transaction
from service.db.stats import read_storage_gauges
from service.errors import ServiceError

SECONDS = 60.0
# Every tenant is a set of time series; a service with more of them is watched by its totals.
MOST_TENANTS = 1000

logger = logging.getLogger(__name__)


class Scrapes:
    """Knows the tenants that were searched here, and refreshes the figures of their indexes."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._lock = Lock()
        self._tenants: set[str] = set()
        self._refreshed = float("-inf")

    def know(self, tenant_id: str) -> None:
        """Watch a tenant from now on."""
        if tenant_id not in self._tenants and len(self._tenants) < MOST_TENANTS:
            with self._lock:
                self._tenants.add(tenant_id)

    def refresh(self) -> None:
        """Note the figures anew if they are old; a database that is away leaves them as they are.

        Under row-level security, as the tenants that were searched here: nobody else is looked up.
        """
        with self._lock:
            if time.monotonic() - self._refreshed < SECONDS:
                return
            self._refreshed = time.monotonic()
            tenants = sorted(self._tenants)
        try:
            with tenant_transaction(self._engine, tenants) as connection:
                self._metrics.note_sizes(read_storage_gauges(connection, tenants))
        except ServiceError as exc:
            logger.warning("The sizes of the indexes are not known: %s", exc)
