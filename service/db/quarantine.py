"""Marks on nodes that are not to be returned: broken examples, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from service.types import Json, Node

MARK: Mapping[str, Json] = {"quarantined": True}
"""What the metadata of a marked node contains."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A node as it was judged: why it is broken, or None if it is sound."""

    node: Node
    reason: str | None


@dataclass(frozen=True, slots=True)
class KeptMark:
    """The mark of a stored node, and the content it was given for."""

    content: str
    reason: str


def set_quarantine(
    connection: Connection, tenant_id: str, *, judgements: Sequence[Judgement]
) -> dict[int, bool]:
    """Mark the broken, take the mark from the sound; return the nodes that changed."""
    rows = connection.exec_driver_sql(
        "select node_id, quarantined from public.set_quarantine(%s, %s, %s, %s)",
        (
            tenant_id,
            [each.node.node_id for each in judgements],
            [each.node.content_hash for each in judgements],
            [each.reason for each in judgements],
        ),
    )
    return {row.node_id: row.quarantined for row in rows}


def list_marks(
    connection: Connection, tenant_id: str, *, dataset_name: str, external_ids: Sequence[str]
) -> dict[str, KeptMark]:
    """Return the marks that stand on these nodes of a dataset, by external id."""
    rows = connection.exec_driver_sql(
        "select n.external_id, n.content, n.metadata ->> 'quarantine_reason'"
        " from public.knowledge_nodes as n"
        " where n.tenant_id = %s and n.dataset_name = %s and n.external_id = any(%s)"
        " and n.metadata ? 'quarantined'",
        (tenant_id, dataset_name, list(external_ids)),
    )
    return {name: KeptMark(content, reason or "") for name, content, reason in rows}
