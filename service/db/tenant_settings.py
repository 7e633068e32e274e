"""Settings a tenant has of its own: they stand before those of the service."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from service.errors import SettingsError
from service.settings import Settings, override_settings
from service.types import Json

TENANT_SETTINGS = (
    *("hybrid_keyword_weight", "hybrid_vector_weight", "hybrid_fusion", "hybrid_rrf_k"),
    "hybrid_intent_weights",
    *("retrieval_k_base", "query_adaptive_weights", "graph_walk_weight", "graph_prior_weight"),
    *("reranker", "reranker_fallback", "rerank_topk", "mmr_alpha"),
    *("context_confidence_threshold", "content_quality_threshold", "context_token_budget"),
    *("packing_per_doc_cap", "packing_per_section_cap", "packing_novelty_alpha"),
    *("packing_answerability_bonus", "section_reunification"),
)


def read_tenant_settings(connection: Connection, tenant_id: str) -> dict[str, Json]:
    """Return what the tenant has set of its own, by field name; nothing for most."""
    stored = connection.exec_driver_sql(
        "select public.read_tenant_settings(%s)", (tenant_id,)
    ).scalar_one()
    # What an earlier release could store and this one no longer knows is not in force.
    return {name: value for name, value in stored.items() if name in TENANT_SETTINGS}


def write_tenant_settings(
    connection: Connection, tenant_id: str, *, settings: Mapping[str, Json]
) -> dict[str, Json]:
    """Give the tenant these settings in place of all it had, and return those."""
    values = check_tenant_settings(settings)
    replaced = connection.exec_driver_sql(
        "select public.write_tenant_settings(%s, %s)", (tenant_id, Jsonb(values))
    ).scalar_one()
    return dict(replaced)


def undo_tenant_settings(connection: Connection, tenant_id: str) -> dict[str, Json]:
    """Restore what the tenant had before the last write, and return it; NotFound if nothing."""
    restored = connection.exec_driver_sql(
        "select public.undo_tenant_settings(%s)", (tenant_id,)
    ).scalar_one()
    return dict(restored)


def apply_tenant_settings(settings: Settings, stored: Mapping[str, Json]) -> Settings:
    """Return the service's settings with the tenant's own before them."""
    return override_settings(settings, stored, place="the tenant's settings")


def check_tenant_settings(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Return settings of a tenant with their values read; SettingsError names what is wrong."""
    for name in settings:
        if name not in TENANT_SETTINGS:
            near = difflib.get_close_matches(name, TENANT_SETTINGS, n=2)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise SettingsError(
                f'"{name}" is not a setting of a tenant.{meant}',
                hint=f"A tenant may set {', '.join(TENANT_SETTINGS)}.",
            )
    checked = override_settings(Settings(), settings, place="the tenant's settings")
    return {name: getattr(checked, name) for name in settings}
