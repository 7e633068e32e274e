"""Recorded paraphrases: what a good expansion model writes, so that a run needs no model.

paraphrases.jsonl holds two other phrasings for each of the first 100 judged test questions of two
sets, by query id; they were written from the questions alone, without a look at the documents.
"""

from __future__ import annotations

import json
from pathlib import Path

PARAPHRASES = Path(__file__).with_name("paraphrases.jsonl")

Phrasings = tuple[str, ...]


def read_paraphrases(name: str, *, path: Path = PARAPHRASES) -> dict[str, Phrasings]:
    """The other phrasings of one set's questions, by query id; a set without any is refused."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    found = {row["query_id"]: tuple(row["phrasings"]) for row in rows if row["set"] == name}
    if not found:
        known = sorted({row["set"] for row in rows})
        raise ValueError(f"{path.name} has no paraphrases of {name}, only of {', '.join(known)}.")
    return found
