"""What a context is made of: stored nodes by id, and the pieces that stand beside them.

A node with groups (acl) is read only by a caller who shares one: `acl_groups` are the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection

from service.errors import InvalidInput
from service.types import Node, Vector

_NODE_COLUMNS = (
    "n.node_id, n.tenant_id, n.external_id, n.dataset_name, n.node_type, n.title, n.summary,"
    " n.content, n.metadata, n.parent_id, n.section_path, n.order_index, n.header, n.doc_title,"
    " n.url, n.lang, n.space_id, n.token_count, n.content_hash"
)
_MAY_READ = "(n.acl = '{}' or n.acl && %(groups)s::text[])"
_FACTOR = 2**32
_LEAST_PLACE, _LAST_PLACE = -(2**31), 2**31 - 1
# Where a tenant was never analysed, the planner may take an index that knows the tenant alone. So
# nothing is looked up row by row: at worst, a statement reads the tenant once or twice.
_NODES = f"""
    select {_NODE_COLUMNS}
    from public.knowledge_nodes as n
    where n.tenant_id = any(%(tenants)s) and n.node_id = any(%(node_ids)s) and {_MAY_READ}
"""
# As bytes: as text, a vector costs ten times as much to read.
_VECTORS = """
    select s.node_id, public.halfvec_send(s.embedding)
    from contextforge.search_nodes as s
    where s.tenant_id = any(%(tenants)s) and s.node_id = any(%(node_ids)s)
        and s.embedding is not null
"""
_PLACES = """
    select n.node_id, n.tenant_id, n.parent_id, n.order_index
    from public.knowledge_nodes as n
    where n.tenant_id = any(%(tenants)s) and n.node_id = any(%(node_ids)s)
        and n.parent_id is not null and n.order_index is not null
"""
# Parents and places for the index, both in one number for what is really wanted of them.
_NEIGHBOURS = f"""
    select {_NODE_COLUMNS}
    from public.knowledge_nodes as n
    where n.tenant_id = any(%(tenants)s) and {_MAY_READ}
        and n.parent_id = any(%(parents)s) and n.order_index = any(%(places)s)
        and n.parent_id * {_FACTOR} + n.order_index = any(%(both)s)
    order by n.order_index, n.node_id
"""


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node as it is read, with its vector if that was asked for and is there."""

    node: Node
    embedding: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Seed:
    """Where a node stands."""

    node_id: int
    tenant_id: str
    parent_id: int
    order_index: int

    def list_places(self, reach: int) -> range:
        """The places within reach, its own among them, that an integer can hold."""
        first, last = self.order_index - reach, self.order_index + reach
        return range(max(first, _LEAST_PLACE), min(last, _LAST_PLACE) + 1)


def read_nodes(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    node_ids: Sequence[int],
    with_embeddings: bool = False,
    acl_groups: Sequence[str] = (),
) -> list[StoredNode]:
    """Return these nodes in the order given; those that are gone or not the caller's are left out.

    The vectors are the unpadded ones that search compares, as float32.
    """
    _require_tenants(connection, tenant_ids)
    asked = {"tenants": list(tenant_ids), "node_ids": list(node_ids), "groups": list(acl_groups)}
    rows = connection.exec_driver_sql(_NODES, asked).all()
    vectors: dict[int, Vector] = {}
    if with_embeddings:
        sent = connection.exec_driver_sql(_VECTORS, asked)
        vectors = {node_id: _vector(each) for node_id, each in sent}
    found = {row[0]: StoredNode(Node(*row), vectors.get(row[0])) for row in rows}
    return [found[each] for each in dict.fromkeys(node_ids) if each in found]


def list_neighbours(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    node_ids: Sequence[int],
    reach: int = 1,
    acl_groups: Sequence[str] = (),
) -> dict[int, tuple[Node, ...]]:
    """Return what stands at most `reach` places before or after each node, in document order.

    Places are order_index under the same parent. A node without neighbours is left out.
    """
    if reach < 1:
        raise InvalidInput(f"a reach of {reach} finds no neighbours.", hint="Use 1 or more.")
    _require_tenants(connection, tenant_ids)
    asked = {"tenants": list(tenant_ids), "node_ids": list(node_ids)}
    seeds = [_Seed(*row) for row in connection.exec_driver_sql(_PLACES, asked)]
    wanted = {(seed.parent_id, place) for seed in seeds for place in seed.list_places(reach)}
    if not wanted:
        return {}
    rows = connection.exec_driver_sql(
        _NEIGHBOURS,
        {
            "tenants": list(tenant_ids),
            "groups": list(acl_groups),
            "parents": sorted({parent for parent, _ in wanted}),
            "places": sorted({place for _, place in wanted}),
            "both": sorted(parent * _FACTOR + place for parent, place in wanted),
        },
    )
    return _group_by_seed([Node(*row) for row in rows], seeds, reach=reach)


def _require_tenants(connection: Connection, tenant_ids: Sequence[str]) -> None:
    connection.exec_driver_sql("select contextforge.require_tenants(%s)", (list(tenant_ids),))


def _group_by_seed(
    nodes: Sequence[Node], seeds: Sequence[_Seed], *, reach: int
) -> dict[int, tuple[Node, ...]]:
    stand: dict[tuple[str, int | None, int | None], list[Node]] = {}
    for node in nodes:
        stand.setdefault((node.tenant_id, node.parent_id, node.order_index), []).append(node)
    grouped = {
        seed.node_id: tuple(
            node
            for place in seed.list_places(reach)
            for node in stand.get((seed.tenant_id, seed.parent_id, place), ())
            if node.node_id != seed.node_id
        )
        for seed in seeds
    }
    return {node_id: beside for node_id, beside in grouped.items() if beside}


def _vector(sent: bytes) -> Vector:
    """A halfvec as PostgreSQL sends it: four bytes of frame, then 16-bit floats, big-endian."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)
