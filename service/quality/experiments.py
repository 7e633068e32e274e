"""Experiments on live traffic: started with settings that are right, watched, and rolled back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from sqlalchemy import Connection

from service.db.experiments import (
    end_experiment,
    find_running,
    read_searches,
    start_experiment,
)
from service.db.tenant_settings import check_tenant_settings, read_tenant_settings
from service.errors import InvalidInput
from service.quality.comparison import Limits, find_trigger
from service.quality.recorder import Recorder
from service.settings import Settings
from service.types import Experiment, Json

logger = logging.getLogger(__name__)

ROLLED_BACK = "rolled_back"
STOPPED = "stopped"


def begin_experiment(
    connection: Connection,
    tenant_id: str,
    *,
    name: str,
    share: float,
    settings: Mapping[str, Json],
    interleaved: bool = False,
) -> Experiment:
    """Start an experiment with settings of a tenant; InvalidInput where it could show nothing."""
    if not 0 < share < 1:
        raise InvalidInput("A share is a number between 0 and 1, such as 0.1.")
    if not settings:
        raise InvalidInput("Variant b must differ.", hint='Name a setting: --set "NAME=VALUE".')
    own = read_tenant_settings(connection, tenant_id)
    together = check_tenant_settings({**own, **settings})
    return start_experiment(
        connection,
        tenant_id,
        name=name,
        share=share,
        settings={name: together[name] for name in settings},
        interleaved=interleaved,
    )


def read_limits(settings: Settings) -> Limits:
    """Return when variant b is stopped by itself."""
    return Limits(
        recall_drop=settings.ab_max_recall_drop,
        latency_rise=settings.ab_max_latency_rise,
        error_rise=settings.ab_max_error_rise,
        least_searches=settings.ab_least_searches,
    )


def roll_back_if_worse(connection: Connection, tenant_id: str, *, settings: Settings) -> str | None:
    """Stop the running experiment where a trigger says so, and return why; None if none does."""
    experiment = find_running(connection, tenant_id)
    if experiment is None:
        return None
    tried = read_searches(
        connection,
        tenant_id,
        experiment_id=experiment.experiment_id,
        most_per_caller=settings.ab_searches_per_caller,
    )
    reason = find_trigger(experiment, tried.searches, limits=read_limits(settings))
    if reason is None or not end_experiment(
        connection,
        tenant_id,
        experiment_id=experiment.experiment_id,
        outcome=ROLLED_BACK,
        reason=reason,
    ):
        return None
    logger.warning(
        'Experiment "%s" of tenant %s was rolled back: %s.', experiment.name, tenant_id, reason
    )
    return reason


class RollbackWatch:
    """Looks at running experiments in the background while there is traffic, so often a tenant."""

    def __init__(
        self, recorder: Recorder, settings: Settings, *, on_rollback: Callable[[], None]
    ) -> None:
        self._recorder = recorder
        self._settings = settings
        self._on_rollback = on_rollback
        self._looked: dict[str, float] = {}
        self._lock = Lock()
        self._write = self._look  # one bound method: rows are grouped by it

    def note_search(self, tenant_id: str) -> None:
        """Have the tenant's experiment looked at, if that was not done a moment ago."""
        now = time.monotonic()
        with self._lock:
            looked = self._looked.get(tenant_id)
            if looked is not None and now - looked < self._settings.ab_check_seconds:
                return
            self._looked[tenant_id] = now
        self._recorder.submit(tenant_id, self._write, None)

    def _look(self, connection: Connection, tenant_id: str, _: Sequence[None]) -> None:
        if roll_back_if_worse(connection, tenant_id, settings=self._settings) is not None:
            self._on_rollback()
