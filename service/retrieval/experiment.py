"""Which variant of an experiment a search is, and how two lists become one (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from service.types import Candidate, Experiment, Json, Team, Variant


@dataclass(frozen=True, slots=True)
class Assignment:
    """The variant of one search, and the settings that variant b tries out.

    draw: tells this search from others, for whatever else is left to chance about it.
    """

    experiment_id: UUID
    variant: Variant
    settings: Mapping[str, Json]
    draw: bytes


@dataclass(frozen=True, slots=True)
class Interleaved:
    """One list of two, and which of them chose each node."""

    candidates: tuple[Candidate, ...]
    teams: Mapping[int, Team]


def assign_variant(experiment: Experiment, *, caller: str, text: str) -> Assignment:
    """Return the variant of a search: the same for one caller and question, whenever asked."""
    question = " ".join(text.casefold().split())
    parts = (str(experiment.experiment_id), experiment.tenant_id, caller, question)
    draw = sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    tried: Variant = "interleaved" if experiment.interleaved else "b"
    variant: Variant = tried if read_share(draw) < experiment.share else "a"
    return Assignment(experiment.experiment_id, variant, experiment.settings, draw)


def read_share(digest: bytes) -> float:
    """Return a number from 0 to below 1, evenly spread over digests."""
    # 53 bits are what a float holds exactly: more could round up to 1.
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


def interleave(
    ours: Sequence[Candidate], theirs: Sequence[Candidate], *, draw: bytes
) -> Interleaved:
    """Return a team draft: in each round a coin says whether a or b picks its next best first."""
    lists: dict[Team, list[Candidate]] = {"a": list(ours), "b": list(theirs)}
    most = max(len(ours), len(theirs))
    chosen: list[Candidate] = []
    teams: dict[int, Team] = {}
    turn = 0
    while len(chosen) < most and any(lists.values()):
        order: tuple[Team, Team] = ("a", "b") if _toss(draw, turn) else ("b", "a")
        turn += 1
        for team in order:
            lists[team] = [each for each in lists[team] if each.node.node_id not in teams]
            if lists[team] and len(chosen) < most:
                candidate = lists[team].pop(0)
                teams[candidate.node.node_id] = team
                chosen.append(candidate)
    return Interleaved(tuple(chosen), teams)


def _toss(draw: bytes, turn: int) -> bool:
    return sha256(draw + turn.to_bytes(4)).digest()[0] % 2 == 0
