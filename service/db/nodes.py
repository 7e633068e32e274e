"""The write path: one Python function per SQL function, of the same name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

import numpy as np
from sqlalchemy import Connection

from service.errors import InvalidInput
from service.types import (
    DeletedNode,
    LinkDraft,
    NodeDraft,
    UpsertedLink,
    UpsertedNode,
    Vector,
)

_NOTHING = "Nothing of this batch was stored."
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NODE_KEYS = tuple(field.name for field in fields(NodeDraft))


def upsert_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    nodes: Sequence[NodeDraft],
    embeddings: Sequence[Vector | None] | None = None,
    dataset_name: str = "default",
    embedder_version: str | None = None,
    allow_mixed: bool = False,
) -> list[UpsertedNode]:
    """Store a batch of nodes in the caller's transaction; nothing of it if anything is wrong."""
    payload = encode_nodes(nodes)
    vectors = None if embeddings is None else _check_embeddings(nodes, embeddings)
    rows = connection.exec_driver_sql(
        "select external_id, node_id, action"
        " from public.upsert_nodes(%s, %t::jsonb, %b::public.vector[], %s, %s, %s)",
        (tenant_id, payload, vectors, dataset_name, embedder_version, allow_mixed),
    )
    return [UpsertedNode(*row) for row in rows]


def delete_nodes(
    connection: Connection,
    tenant_id: str,
    *,
    external_ids: Sequence[str],
    dataset_name: str = "default",
) -> list[DeletedNode]:
    """Delete nodes with everything below them; return what is gone."""
    rows = connection.exec_driver_sql(
        "select external_id, node_id from public.delete_nodes(%s, %s, %s)",
        (tenant_id, list(external_ids), dataset_name),
    )
    return [DeletedNode(*row) for row in rows]


def upsert_links(
    connection: Connection,
    tenant_id: str,
    *,
    links: Sequence[LinkDraft],
    dataset_name: str = "default",
) -> list[UpsertedLink]:
    """Store a batch of links between nodes of one tenant; nothing of it if anything is wrong."""
    payload = encode_links(links)
    rows = connection.exec_driver_sql(
        "select source_id, target_id, link_type, action"
        " from public.upsert_links(%s, %t::jsonb, %s)",
        (tenant_id, payload, dataset_name),
    )
    return [UpsertedLink(*row) for row in rows]


def encode_nodes(nodes: Sequence[NodeDraft]) -> str:
    """Return the nodes as json, or name the first with something PostgreSQL's json cannot hold."""
    payload = [_node_json(node) for node in nodes]
    encoded = _encode(payload)
    if encoded is None:
        for place, (node, values) in enumerate(zip(nodes, payload, strict=True), start=1):
            name = node.external_id.encode(errors="backslashreplace").decode()
            _refuse_flaws(f'node {place} ("{name}")', values)
    return encoded or json.dumps(payload)


def encode_links(links: Sequence[LinkDraft]) -> str:
    """Return the links as json, or name the first with something PostgreSQL's json cannot hold."""
    payload = [
        {key: value for key, value in asdict(link).items() if value is not None} for link in links
    ]
    encoded = _encode(payload)
    if encoded is None:
        for place, values in enumerate(payload, start=1):
            _refuse_flaws(f"link {place}", values)
    return encoded or json.dumps(payload)


def _node_json(node: NodeDraft) -> dict[str, object]:
    values: dict[str, object] = {}
    for key in _NODE_KEYS:
        value = getattr(node, key)
        if value is not None and value not in ((), ""):
            values[key] = list(value) if key == "acl" else value
    return values


def _encode(payload: Sequence[Mapping[str, object]]) -> str | None:
    """Encode a whole batch at once, or return None where some value deserves a closer look."""
    try:
        encoded = json.dumps(payload, ensure_ascii=False, allow_nan=False)
        encoded.encode()
    except ValueError:  # not finite, or half of a surrogate pair
        return None
    return None if "\\u0000" in encoded else encoded


def _refuse_flaws(what: str, values: Mapping[str, object]) -> None:
    for key, value in values.items():
        flaw = _find_flaw(value)
        if flaw:
            raise InvalidInput(f"{what} has {flaw} in its {key}.", hint=_NOTHING)


def _find_flaw(value: object) -> str | None:
    """Name what PostgreSQL's json cannot hold, wherever it hides in the value."""
    if isinstance(value, str):
        if "\x00" in value:
            return "a NUL byte"
        broken = not value.isascii() and _LONE_SURROGATE.search(value)
        return "half of a surrogate pair" if broken else None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if isinstance(value, Mapping):
        return _find_flaw([*value, *value.values()])
    if isinstance(value, Sequence):
        return next((flaw for each in value if (flaw := _find_flaw(each))), None)
    return None


def _check_embeddings(
    nodes: Sequence[NodeDraft], embeddings: Sequence[Vector | None]
) -> list[Vector | None]:
    """Return the embeddings as float32, or name the first that no vector column can hold."""
    if len(nodes) != len(embeddings):
        raise InvalidInput(f"{len(nodes)} nodes came with {len(embeddings)} embeddings.")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, see below
        vectors = [
            None if each is None else np.asarray(each, dtype=np.float32) for each in embeddings
        ]
    if _are_sound([vector for vector in vectors if vector is not None]):
        return vectors
    for place, (node, vector) in enumerate(zip(nodes, vectors, strict=True), start=1):
        if vector is not None and not _are_sound([vector]):
            raise InvalidInput(
                f'node {place} ("{node.external_id}") has an embedding with NaN, infinite or '
                "no values.",
                hint=_NOTHING,
            )
    return vectors


def _are_sound(vectors: Sequence[Vector]) -> bool:
    """Whether all are lists of finite numbers; as one matrix, which is faster than one by one."""
    if len({vector.shape for vector in vectors}) > 1:
        return all(_are_sound([vector]) for vector in vectors)
    rows = np.array(vectors, dtype=np.float32)
    return not vectors or bool(rows.ndim == 2 and rows.size and np.isfinite(rows).all())
