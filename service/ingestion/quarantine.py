"""Ingestion does not take the mark from a broken example that comes again as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from service.db.quarantine import MARK, list_marks
from service.retrieval.catalog import EXAMPLE
from service.types import NodeDraft


def keep_marks(
    connection: Connection, tenant_id: str, *, dataset_name: str, nodes: Sequence[NodeDraft]
) -> Sequence[NodeDraft]:
    """The nodes, with the marks of stored examples whose SQL is still the one that is broken."""
    names = [node.external_id for node in nodes if node.node_type == EXAMPLE]
    if not names:
        return nodes
    marks = list_marks(connection, tenant_id, dataset_name=dataset_name, external_ids=names)
    return [
        replace(node, metadata={**node.metadata, **MARK, "quarantine_reason": mark.reason})
        if (mark := marks.get(node.external_id)) is not None and mark.content == node.content
        else node
        for node in nodes
    ]
