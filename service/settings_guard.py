"""Finds variables that were meant for this service but are not settings: misspelt or unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

# Only words no other program is likely to begin its variables with: a foreign DATABASE_HOST,
# ANTHROPIC_MODEL or EMBEDDING_PROVIDER must never stop the service from starting.
OUR_PREFIXES = (
    "CONTEXTFORGE_",
    "CONTEXT_TOKEN_",
    "CONTEXT_CONFIDENCE_",
    "CONTENT_QUALITY_",
    "HYBRID_",
    "MMR_",
    "PACKING_",
    "QUERY_ADAPTIVE_",
    "RERANK_",
    "RERANKER_",
    "RETRIEVAL_",
    "SECTION_REUNIFICATION_",
    "SYNTHESIS_",
)
NEAR = 2


@dataclass(frozen=True, slots=True)
class Suspect:
    """A variable that looks like a setting but is none, and the settings it may stand for."""

    name: str
    meant: tuple[str, ...]


def edit_distance(left: str, right: str) -> int:
    """Count the insertions, deletions and substitutions that turn one name into the other."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            diagonal, row[j] = (
                row[j],
                min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b)),
            )
    return row[-1]


def find_suspects(names: Iterable[str], known: Collection[str]) -> list[Suspect]:
    """Return the names that bear one of our prefixes or nearly equal a setting, sorted."""
    found = (judge_name(name, known) for name in sorted(names))
    return [suspect for suspect in found if suspect is not None]


def judge_name(name: str, known: Collection[str]) -> Suspect | None:
    """Return why a variable is suspicious, or None for a setting or a foreign variable."""
    upper = name.upper()
    if upper in known:
        return None
    near = _nearest(upper, known)
    if near:
        return Suspect(name, near)
    prefix = next((prefix for prefix in OUR_PREFIXES if upper.startswith(prefix)), None)
    if prefix is None:
        return None
    return Suspect(name, tuple(sorted(each for each in known if each.startswith(prefix))))


def _nearest(upper: str, known: Collection[str]) -> tuple[str, ...]:
    distances = {
        each: edit_distance(upper, each) for each in known if abs(len(each) - len(upper)) <= NEAR
    }
    best = min(distances.values(), default=NEAR + 1)
    if best > NEAR:
        return ()
    return tuple(sorted(each for each, distance in distances.items() if distance == best))
