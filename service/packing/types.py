"""What packing returns: the context, its blocks, and why each candidate is in or out (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from service.types import Json

Role = Literal["selected", "reunited"]
Outcome = Literal["selected", "reunited", "dropped"]
Reason = Literal["same_node", "empty", "near_duplicate", "per_doc_cap", "per_section_cap", "budget"]


@dataclass(frozen=True, slots=True)
class PackedItem:
    """A node in a block; `reunited` means that it came with its neighbour.

    score is what the candidate came with, value what it was worth; a reunited node that was no
    candidate has neither.
    """

    node_id: int
    role: Role
    score: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """One numbered source of a context: pieces of one section in document order, as one text.

    tokens are those of the block as it is rendered, with its marker, heading and the empty line
    after it; those of a context are their sum.
    """

    number: int
    items: tuple[PackedItem, ...]
    tenant_id: str
    title: str
    heading: str
    section_path: str | None
    header: str | None
    url: str | None
    body: str
    tokens: int
    score: float
    trimmed: bool = False

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The nodes of the block in document order."""
        return tuple(item.node_id for item in self.items)

    @property
    def marker(self) -> str:
        """How the context names the block."""
        return f"[{self.number}]"


@dataclass(frozen=True, slots=True)
class ItemTrace:
    """What became of one candidate, and every number that led there.

    relevance = score + bonus; value = relevance - alpha * repetition - the price of its length.
    `other` is the node that it repeats, or that holds its place under a cap.
    """

    node_id: int
    title: str
    section_path: str | None
    outcome: Outcome
    tokens: int
    score: float
    bonus: float = 0.0
    agreement: float = 0.0
    form: str | None = None
    header_match: float = 0.0
    novelty: float = 1.0
    value: float | None = None
    block: int | None = None
    trimmed: bool = False
    reason: Reason | None = None
    other: int | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Reunion:
    """A node that came along with a neighbour, into which block, and for how many tokens."""

    node_id: int
    block: int
    tokens: int
    was_candidate: bool


@dataclass(frozen=True, slots=True)
class PackTrace:
    """The whole account: the rules, every candidate in order of relevance, every reunion."""

    budget: int
    tokens: int
    vocabulary: str
    per_doc_cap: int
    per_section_cap: int
    novelty_alpha: float
    answerability_bonus: float
    section_reunification: bool
    items: tuple[ItemTrace, ...]
    reunions: tuple[Reunion, ...]

    def to_json(self) -> Mapping[str, Json]:
        """The account as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Pack:
    """A context within its budget; `text` is what was counted."""

    text: str
    tokens: int
    budget: int
    blocks: tuple[PackedBlock, ...]
    trace: PackTrace

    def find(self, number: int) -> PackedBlock | None:
        """Return the block of a source number."""
        return self.blocks[number - 1] if 1 <= number <= len(self.blocks) else None
