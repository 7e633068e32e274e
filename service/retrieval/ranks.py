"""Ranks of a tenant's nodes by its links: stored and kept fresh, or held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock

from cachetools import TTLCache
from sqlalchemy import Connection, Engine

from service.db.engine import tenant_transaction
from service.db.ranks import (
    claim_ranks,
    count_articles,
    list_due_tenants,
    list_link_marks,
    read_links,
    read_parents,
    read_rank_state,
    read_ranks,
    store_ranks,
)
from service.retrieval.graph import compute_pagerank
from service.types import NodeRanks, RankState

LIFETIME = timedelta(hours=1)
# Below it, links are too few to tell which articles matter; public.read_ranks has the same figure.
LEAST_LINKS_PER_ARTICLE = 0.5


def refresh_ranks(engine: Engine, tenant_id: str, *, force: bool = False) -> RankState | None:
    """Compute a tenant's ranks anew if its links changed and they are older than an hour."""
    with tenant_transaction(engine, [tenant_id]) as connection:
        update_ranks(connection, tenant_id, force=force)
        return read_rank_state(connection, tenant_id)


def update_ranks(connection: Connection, tenant_id: str, *, force: bool = False) -> bool:
    """Do the same in the caller's transaction; False if they stayed as they were."""
    due = force or list_due_tenants(connection, [tenant_id], older_than=LIFETIME)
    if not due or not claim_ranks(connection, tenant_id):
        return False
    # The marks come first: a change between the two reads is then computed once more, never lost.
    marks = list_link_marks(connection, tenant_id)
    links = read_links(connection, tenant_id)
    computed = compute_pagerank(links)
    store_ranks(
        connection,
        tenant_id,
        ranks=dict(zip(computed.node_ids.tolist(), computed.ranks.tolist(), strict=True)),
        links=len(links.sources),
        seen_marks=marks,
    )
    return True


@dataclass(frozen=True, slots=True)
class _Held:
    """A tenant's ranks divided by their largest; none where there are too few links."""

    shares: dict[int, float]
    sparse: bool


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Ranks for a caller that may not write: the stored ones while they are good, else its own.

    What it computes it keeps for an hour, for the tenants of one database.
    """

    _held: TTLCache[str, _Held] = field(
        default_factory=lambda: TTLCache(maxsize=1000, ttl=LIFETIME.total_seconds())
    )
    _lock: Lock = field(default_factory=Lock)

    def read_ranks(
        self, connection: Connection, tenant_ids: Sequence[str], node_ids: Sequence[int]
    ) -> NodeRanks:
        """Return PageRank / the tenant's largest for each node; a section has its article's."""
        due = list_due_tenants(connection, tenant_ids, older_than=LIFETIME)
        good = [tenant_id for tenant_id in tenant_ids if tenant_id not in due]
        stored = read_ranks(connection, good, node_ids) if good else NodeRanks({})
        if not due:
            return stored
        held = {tenant_id: self._hold(connection, tenant_id) for tenant_id in due}
        shares = dict(stored.shares)
        for tenant_id, each in held.items():
            parents = read_parents(connection, [tenant_id], node_ids=node_ids)
            shares |= _look_up(each, parents)
        sparse = (*stored.sparse, *(name for name, each in held.items() if each.sparse))
        return NodeRanks(shares, sparse=tuple(sorted(sparse)))

    def _hold(self, connection: Connection, tenant_id: str) -> _Held:
        with self._lock:
            held = self._held.get(tenant_id)
        if held is None:
            held = _compute_held(connection, tenant_id)
            with self._lock:
                self._held[tenant_id] = held
        return held


def _compute_held(connection: Connection, tenant_id: str) -> _Held:
    links = read_links(connection, tenant_id)
    articles = count_articles(connection, tenant_id)
    if not len(links.sources) or len(links.sources) < LEAST_LINKS_PER_ARTICLE * articles:
        return _Held({}, sparse=True)
    computed = compute_pagerank(links)
    shares = computed.ranks / computed.ranks.max()
    return _Held(dict(zip(computed.node_ids.tolist(), shares.tolist(), strict=True)), sparse=False)


def _look_up(held: _Held, parents: dict[int, int | None]) -> dict[int, float]:
    if held.sparse:
        return {}
    return {
        node_id: held.shares.get(node_id, held.shares.get(parent_id or 0, 0.0))
        for node_id, parent_id in parents.items()
    }
