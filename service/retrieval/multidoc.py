"""Several documents instead of one: the best articles, and the best sections of each (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from service.retrieval.gate import read_confidence
from service.retrieval.trace import Drop, StepResult
from service.types import Candidate


def choose_documents(
    candidates: Sequence[Candidate],
    *,
    num_docs: int = 5,
    max_sections: int = 3,
    min_relevance: float = 0.7,
) -> StepResult:
    """Keep the best sections of the articles whose best sections together score highest.

    A section below min_relevance is skipped; where all are below it, all stay in the running.
    """
    relevant = [each for each in candidates if read_relevance(each) >= min_relevance]
    drops = [
        Drop(each.node.node_id, f"relevance {read_relevance(each):.3f} is below {min_relevance:g}")
        for each in (candidates if relevant else ())
        if read_relevance(each) < min_relevance
    ]
    articles: dict[int, list[Candidate]] = {}
    for candidate in sorted(relevant or candidates, key=attrgetter("score"), reverse=True):
        articles.setdefault(read_article(candidate), []).append(candidate)
    ranked = sorted(
        articles.values(),
        key=lambda sections: sum(each.score for each in sections[:max_sections]),
        reverse=True,
    )
    kept: list[Candidate] = []
    for place, sections in enumerate(ranked):
        chosen = sections[:max_sections] if place < num_docs else []
        reason = f"{max_sections} sections" if place < num_docs else f"{num_docs} articles"
        kept += chosen
        drops += [
            Drop(each.node.node_id, f"beyond the best {reason}") for each in sections[len(chosen) :]
        ]
    return StepResult(kept, tuple(drops), {"articles": min(num_docs, len(ranked))})


def read_article(candidate: Candidate) -> int:
    """Return the id of the article a node belongs to, which may be itself."""
    return candidate.node.parent_id or candidate.node.node_id


def read_relevance(candidate: Candidate) -> float:
    """Return the calibrated cosine, or what the node is ranked by where it has none."""
    confidence = read_confidence(candidate)
    return candidate.score if confidence is None else confidence
