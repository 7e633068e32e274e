"""A short memory of retrievals: never across tenants, groups or settings, nor past a write."""

from __future__ import annotations

import json
from threading import Lock
from typing import Generic, TypeVar

from cachetools import TTLCache

from service.retrieval.request import Frame

Value = TypeVar("Value")
Key = tuple[object, ...]

SECONDS = 60.0
MOST_ENTRIES = 256


class RetrievalCache(Generic[Value]):
    """Keeps what was retrieved for a minute; safe to share between threads."""

    def __init__(self, *, seconds: float = SECONDS, most_entries: int = MOST_ENTRIES) -> None:
        self._entries: TTLCache[Key, Value] = TTLCache(most_entries, seconds)
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return what is remembered under the key."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Remember a value."""
        with self._lock:
            self._entries[key] = value


def make_key(frame: Frame) -> Key:
    """Return the key of a request: two that differ in what they may see or find never share one.

    The tenants' newest write is part of it, so whatever is ingested is found at once.
    """
    request = frame.request
    filters = request.filters
    return (
        request.text,
        request.max_results,
        request.node_types,
        request.dataset_name,
        request.keywords_only,
        tuple((each.tenant_id, each.embedder_version, each.newest_write) for each in frame.states),
        (filters.lang, filters.space_id, tuple(filters.docs), tuple(sorted(filters.acl_groups))),
        json.dumps([filters.metadata, filters.without_metadata], sort_keys=True, default=str),
        frame.options,
        json.dumps([each.settings for each in frame.states], sort_keys=True),
        # Else the variant with more traffic would look faster: it finds more of it remembered.
        frame.assignment and (frame.assignment.experiment_id, frame.assignment.variant),
    )
