"""BEIR folders: a corpus, questions, and which documents answer them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from service.errors import InvalidInput, NotFound
from service.ingestion.jsonl import BEIR_CORPUS

DEFAULT_SPLIT = "test"
Judgements = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a set; row is its place in the file, dataset the only one it is asked of."""

    query_id: str
    text: str
    row: int
    sql: str | None = None
    database: str | None = None
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A folder as it is evaluated: the questions that have a relevant document, and those."""

    folder: Path
    questions: tuple[Question, ...]
    judgements: Judgements
    rows: int

    @property
    def corpus(self) -> Path:
        """The file of the documents."""
        return self.folder / BEIR_CORPUS


def read_set(folder: Path, *, split: str = DEFAULT_SPLIT) -> JudgedSet:
    """Read questions and judgements of a split; what is missing or wrong is named."""
    if not (folder / BEIR_CORPUS).is_file():
        raise NotFound(
            f"{folder}: no BEIR folder, {BEIR_CORPUS} is missing.",
            hint="A folder has corpus.jsonl, queries.jsonl, and qrels.tsv or qrels/test.tsv.",
        )
    judgements = _read_judgements(_find_judgements(folder, split))
    asked = list(_read_questions(_find_questions(folder, split)))
    judged = tuple(question for question in asked if question.query_id in judgements)
    if not judged:
        raise InvalidInput(f"{folder}: none of the {len(asked)} questions of {split} is judged.")
    kept = {question.query_id: judgements[question.query_id] for question in judged}
    return JudgedSet(folder, judged, kept, len(asked))


def has_split(folder: Path, split: str) -> bool:
    """Whether a folder has judgements of a split."""
    return any(path.is_file() for path in _judgement_places(folder, split))


def hash_corpus(path: Path) -> tuple[str, int]:
    """The hash of a corpus, and how many documents it has."""
    digest = hashlib.sha256()
    documents = 0
    with path.open("rb") as file:
        for line in file:
            digest.update(line)
            documents += bool(line.strip())
    return digest.hexdigest(), documents


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """The JSON objects of a file with one a line, each with the number of its line."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc.strerror}).") from exc
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as exc:
            raise InvalidInput(f"{path}, line {number}: not JSON.") from exc
        if not isinstance(values, dict):
            raise InvalidInput(f"{path}, line {number}: not a JSON object.")
        yield number, values


def _find_questions(folder: Path, split: str) -> Path:
    own = folder / f"queries_{split}.jsonl"
    return own if own.is_file() else folder / "queries.jsonl"


def _judgement_places(folder: Path, split: str) -> tuple[Path, ...]:
    places = (folder / "qrels" / f"{split}.tsv", folder / f"qrels_{split}.tsv")
    return (folder / "qrels.tsv", *places) if split == DEFAULT_SPLIT else places


def _find_judgements(folder: Path, split: str) -> Path:
    for path in _judgement_places(folder, split):
        if path.is_file():
            return path
    found = sorted(folder.glob("qrels/*.tsv")) + sorted(folder.glob("qrels*.tsv"))
    names = ", ".join(str(path.relative_to(folder)) for path in found) or "none"
    raise NotFound(
        f"{folder}: no judgements of the split {split}; there are {names}.",
        hint="Name another split with --split.",
    )


def _read_questions(path: Path) -> Iterator[Question]:
    seen: set[str] = set()
    for row, (number, values) in enumerate(read_objects(path)):
        identity, text = values.get("_id"), values.get("text")
        if not isinstance(identity, str | int) or not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"{path}, line {number}: a question needs _id and text.")
        if str(identity) in seen:
            raise InvalidInput(f"{path}, line {number}: a second question {identity}.")
        seen.add(str(identity))
        sql, database = values.get("sql"), values.get("db_id")
        yield Question(
            str(identity),
            text,
            row,
            sql=sql if isinstance(sql, str) else None,
            database=database if isinstance(database, str) else None,
        )


def _read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Relevant documents by question; a first line without a score is the header."""
    judgements: dict[str, dict[str, int]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split("\t")
        if not line.strip():
            continue
        try:
            query_id, document, score = cells
            relevance = int(score)
        except ValueError as exc:
            if number == 1:
                continue
            raise InvalidInput(
                f"{path}, line {number}: not a question, a document and a score between tabs."
            ) from exc
        if relevance > 0:
            judgements.setdefault(query_id, {})[document] = relevance
    return judgements
