"""A small BEIR folder of our own texts, for the tests of evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DOCUMENTS = {
    "harbour": ("Harbour", "Boats return to the harbour when the barometer falls."),
    "bakery": ("Bakery", "The baker makes bread of flour, water and salt."),
    "mill": ("Mill", "The mill grinds wheat whenever the wind blows."),
    "tower": ("Tower", "A keeper lights the lamp of the tower at dusk."),
    "garden": ("Garden", "Roses and beans grow behind the garden wall."),
    "school": ("School", "The teacher draws maps of the island each spring."),
    "market": ("Market", "Fish and wool are sold on Friday mornings."),
    "workshop": ("Workshop", "A mechanic repairs engines and pumps."),
}
QUESTIONS = {
    "q1": "when do boats return to the harbour",
    "q2": "what is bread made of",
    "q3": "who lights the lamp",
    "q4": "where do roses grow",
    "q5": "on which day is fish sold",
    "q6": "who repairs engines",
}
JUDGEMENTS = {
    "q1": {"harbour": 1},
    "q2": {"bakery": 2, "mill": 1},
    "q3": {"tower": 1},
    "q4": {"garden": 1},
    "q5": {"market": 1},
    "q6": {"workshop": 1},
}


def write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def write_judgements(path: Path, judgements: Mapping[str, Mapping[str, int]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    rows = [(q, d, score) for q, known in judgements.items() for d, score in known.items()]
    lines = [f"{query}\t{document}\t{score}\n" for query, document, score in rows]
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return path


def write_folder(
    folder: Path,
    *,
    documents: Mapping[str, tuple[str, str]] = DOCUMENTS,
    questions: Mapping[str, str] = QUESTIONS,
    judgements: Mapping[str, Mapping[str, int]] = JUDGEMENTS,
    links: Mapping[str, Sequence[str]] | None = None,
    judged_in: str = "qrels.tsv",
) -> Path:
    """Write corpus, questions and judgements; return the folder."""
    folder.mkdir(exist_ok=True)
    write_lines(
        folder / "corpus.jsonl",
        (
            {"_id": name, "title": title, "text": text, "links": list((links or {}).get(name, ()))}
            for name, (title, text) in documents.items()
        ),
    )
    write_lines(
        folder / "queries.jsonl", ({"_id": name, "text": text} for name, text in questions.items())
    )
    write_judgements(folder / judged_in, judgements)
    return folder
