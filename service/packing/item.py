"""A candidate on its way through packing (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from service.packing.answerability import Answerability
from service.types import Candidate

# Types whose children are parts of one text; the columns of a table are not.
DOCUMENT_TYPES = frozenset({"article", "section"})

DocKey = tuple[str, int]
SectionKey = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate with what packing has found out about it."""

    candidate: Candidate
    body: str
    tokens: int
    answer: Answerability
    bonus: float

    @property
    def node_id(self) -> int:
        """The node of the candidate."""
        return self.candidate.node.node_id

    @property
    def relevance(self) -> float:
        """The score it came with, and the bonus for looking like an answer."""
        return self.candidate.score + self.bonus

    @property
    def doc_key(self) -> DocKey:
        """The document it is a piece of; a node that is no piece is its own."""
        node = self.candidate.node
        if node.parent_id is None or node.node_type not in DOCUMENT_TYPES:
            return (node.tenant_id, node.node_id)
        return (node.tenant_id, node.parent_id)

    @property
    def section_key(self) -> SectionKey | None:
        """The section it is a piece of; None where the document has no headings inside."""
        node = self.candidate.node
        path = (node.section_path or "").strip()
        if not path or path == (node.doc_title or node.title).strip():
            return None
        return (*self.doc_key, path)
