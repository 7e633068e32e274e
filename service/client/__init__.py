"""A typed client of the HTTP API; importing it loads no database and no model."""

from __future__ import annotations

from service.api.models.answer import (
    CitationEvent,
    ErrorEvent,
    MessageEvent,
    SearchResultsEvent,
    ShownAnswer,
)
from service.api.models.nodes import GivenLink, GivenNode
from service.api.models.search import GivenFilters, GivenOptions
from service.client.clients import AsyncClient, Client
from service.client.events import AnswerEvent
from service.client.failures import Retries

__all__ = [
    "AnswerEvent",
    "AsyncClient",
    "CitationEvent",
    "Client",
    "ErrorEvent",
    "GivenFilters",
    "GivenLink",
    "GivenNode",
    "GivenOptions",
    "MessageEvent",
    "Retries",
    "SearchResultsEvent",
    "ShownAnswer",
]
