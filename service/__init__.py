"""ContextForge: hybrid retrieval on PostgreSQL, with true BM25, pgvector and tenants."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.adapter import KnowledgeVerseAdapter
    from service.agent import KnowledgeGraphAgent
    from service.client import AsyncClient, Client
    from service.specs import ExampleSpec, FieldSpec

__all__ = [
    "AsyncClient",
    "Client",
    "ExampleSpec",
    "FieldSpec",
    "KnowledgeGraphAgent",
    "KnowledgeVerseAdapter",
    "__version__",
]
__version__ = "0.1.0"

# Where each name lives: `import service` alone loads no database, no model and no web framework.
_PLACES = {
    "AsyncClient": "service.client",
    "Client": "service.client",
    "ExampleSpec": "service.specs",
    "FieldSpec": "service.specs",
    "KnowledgeGraphAgent": "service.agent",
    "KnowledgeVerseAdapter": "service.adapter",
}

if not TYPE_CHECKING:  # else a type checker would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_PLACES[name]), name)
