"""Whole articles with planted near-duplicates and stubs, and questions whose answer is known.

The set is SQuAD 2.0 dev in BEIR layout, found at ../shared/data/squad2_dev. Its paragraphs are put
together again as articles and split by our own ingestion. Planted, by a seed: for a section none,
one or two copies (a sentence left out, every fortieth word with another case, a line added), and
for every second section a stub of its first words. Each is a document of its own.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.ingestion.convert import NodeGroup, group_document
from service.ingestion.documents import Section
from service.ingestion.markdown import read_markdown

SQUAD = Path("../shared/data/squad2_dev")
COPIES, STUBS = "copies/", "stubs/"
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, and the sentences of its paragraph that hold the answer, normalised."""

    text: str
    answering: tuple[str, ...]


def normalise(text: str) -> str:
    """Lower case, one space between words: planted copies differ in both."""
    return " ".join(text.lower().split())


def read_questions(data: Path, *, count: int, seed: int) -> list[AnsweredQuestion]:
    """Some questions of the set, the same ones for the same seed."""
    paragraphs = {each["_id"]: each["text"] for each in _read_lines(data / "corpus.jsonl")}
    with (data / "qrels.tsv").open(encoding="utf-8") as lines:
        relevant = dict(line.split("\t")[:2] for line in list(lines)[1:])
    rows = list(_read_lines(data / "queries.jsonl"))
    picked = random.Random(seed).sample(rows, min(count, len(rows)))
    return [_read_question(row, paragraphs[relevant[row["_id"]]]) for row in picked]


def make_groups(data: Path, *, seed: int) -> Iterator[NodeGroup]:
    """Every article, and after it what was planted for its sections."""
    dice = random.Random(seed)
    articles: dict[str, list[str]] = {}
    for row in _read_lines(data / "corpus.jsonl"):
        articles.setdefault(row["title"], []).append(row["text"])
    for title, paragraphs in articles.items():
        document = read_markdown(_page(title, "\n\n".join(paragraphs)), external_id=f"{title}.md")
        yield group_document(document)
        for section in document.sections:
            yield from _plant(title, section, dice)


def _plant(title: str, section: Section, dice: random.Random) -> Iterator[NodeGroup]:
    place = f"{title}-{section.order_index}"
    for number in range(dice.choices([0, 1, 2], [1, 2, 1])[0]):
        page = _page(title, _change_slightly(section.content, number, dice))
        # A little larger than a section, so that a copy stays one piece.
        copy = read_markdown(page, external_id=f"{COPIES}{place}-{number}.md", size=500)
        yield group_document(copy)
    if dice.random() < 0.5:
        opening = " ".join(dice.choice(SENTENCE_END.split(section.content)).split()[:6])
        page = _page(title, f"{title}: {opening} ... This page is a stub, please expand it.")
        yield group_document(read_markdown(page, external_id=f"{STUBS}{place}.md"))


def _change_slightly(text: str, number: int, dice: random.Random) -> str:
    sentences = SENTENCE_END.split(text)
    if len(sentences) > 3:
        sentences.pop(dice.randrange(1, len(sentences)))
    words = " ".join(sentences).split(" ")
    for place in dice.sample(range(len(words)), k=max(1, len(words) // 40)):
        words[place] = words[place].capitalize()
    return f"{' '.join(words)} Copy {number + 1} of this page."


def _page(title: str, text: str) -> bytes:
    return f"# {title}\n\n{text}\n".encode()


def _read_question(row: dict[str, str], paragraph: str) -> AnsweredQuestion:
    answer = row["answer"].lower()
    holding = [each for each in SENTENCE_END.split(paragraph) if answer in each.lower()]
    return AnsweredQuestion(row["text"], tuple(map(normalise, holding or [row["answer"]])))


def _read_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
