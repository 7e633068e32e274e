"""How searches went, and how much is stored."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from pydantic import Field

from service.api.models.common import Shown


class ShownTraffic(Shown):
    """Searches and what people thought of them; null where there is nothing to say it from."""

    searches: int = Field(description="Searches, contexts and answers.", examples=[1200])
    errors: int = Field(description="Those of them that failed.", examples=[0])
    cache_hit_rate: float | None = Field(examples=[0.2])
    click_through: float | None = Field(
        description="Share of those that showed anything in which something was clicked.",
        examples=[0.4],
    )
    judged: int = Field(description="Searches with feedback on a node.", examples=[310])
    mrr: float | None = Field(
        description="Over those: mean of 1 / position of the first node found good, 0 if none.",
        examples=[0.7],
    )
    positive_in_top: float | None = Field(
        description="Over those: share with a node found good among the first five.",
        examples=[0.9],
    )
    p50_ms: float | None = Field(examples=[9.5])
    p95_ms: float | None = Field(examples=[21.0])
    p99_ms: float | None = Field(examples=[40.0])


class ShownHour(ShownTraffic):
    """The traffic of an hour."""

    hour: datetime = Field(description="When it began.")


class ShownVariant(ShownTraffic):
    """The traffic of a variant of an experiment."""

    experiment_id: UUID
    variant: str = Field(examples=["b"])


class ShownStepLatency(Shown):
    """How long a step took, in milliseconds."""

    step: str = Field(examples=["search"])
    times: int = Field(examples=[1200])
    p50_ms: float = Field(examples=[3.2])
    p95_ms: float = Field(examples=[6.0])
    p99_ms: float = Field(examples=[11.5])


class ShownRecall(Shown):
    """Searches that were repeated exactly, and the share of the nearest nodes that were found."""

    hour: datetime | None = Field(None, description="When it began; null for all of them.")
    audits: int = Field(examples=[12])
    recall: float | None = Field(examples=[0.99])


class ShownGrowth(Shown):
    """What the newest mark has more than the one before it."""

    since: date
    nodes: int
    vectors: int
    segments: int
    postings: int
    bytes: int


class ShownStorage(Shown):
    """What is stored; bytes and growth as contextforge maintain counted them."""

    nodes: int = Field(examples=[5000])
    vectors: int = Field(examples=[4800])
    segments: int = Field(examples=[3])
    postings: int = Field(examples=[210000])
    dead_share: float = Field(description="Share of the postings that are dead.", examples=[0.02])
    bytes: int | None = Field(examples=[52000000])
    growth: ShownGrowth | None


class ShownSizeMark(Shown):
    """What was stored on a day."""

    marked_on: date
    nodes: int
    vectors: int
    segments: int
    postings: int
    dead_postings: int
    bytes: int


class ShownSeries(Shown):
    """The same over time; an hour without a search has no entry."""

    hours: list[ShownHour]
    recall: list[ShownRecall]
    sizes: list[ShownSizeMark]


class ShownStats(Shown):
    """How a tenant's last hours were, and how much it stores."""

    tenant_id: str = Field(examples=["acme"])
    hours: int = Field(examples=[24])
    taken_at: datetime
    traffic: ShownTraffic
    latencies: list[ShownStepLatency] = Field(description="By step, the total last.")
    recall: ShownRecall
    storage: ShownStorage
    variants: list[ShownVariant] = Field(description="Where an experiment took part.")
    series: ShownSeries
