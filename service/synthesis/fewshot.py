"""Examples that show how to answer: the most similar ones, never the asked question itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import numpy as np
from sqlalchemy import Connection

from service.db.context import read_nodes
from service.db.quarantine import MARK
from service.db.search import vector_search_nodes
from service.embedding import Embedder, FloatMatrix
from service.errors import InvalidInput
from service.synthesis.leaks import fold_question
from service.types import Node, SearchFilters, Vector

COUNT = 3
NODE_TYPE = "qa_example"

_QUESTION_KEYS = ("question", "query")
_ANSWER_KEYS = ("answer", "ground_truth")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a good answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Examples with the embeddings of their questions, one row each."""

    examples: tuple[Example, ...]
    vectors: FloatMatrix = field(repr=False)


class ExampleFiles:
    """Example files with their embeddings, read and embedded again only when they change."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = Lock()
        self._known: dict[Path, tuple[tuple[int, int], ExampleSet]] = {}

    def load(self, path: Path) -> ExampleSet:
        """Return the examples of a file; InvalidInput where it cannot be read."""
        state = _read_state(path)
        with self._lock:
            known = self._known.get(path)
            if known is None or known[0] != state:
                examples = tuple(read_example_file(path))
                known = (state, self._embed(examples))
                self._known[path] = known
            return known[1]

    def _embed(self, examples: tuple[Example, ...]) -> ExampleSet:
        if not examples:
            return ExampleSet((), np.empty((0, self._embedder.dimension), dtype=np.float32))
        return ExampleSet(
            examples, self._embedder.embed_queries([each.question for each in examples])
        )


def choose_examples(question: str, query_vector: Vector, *, among: ExampleSet) -> list[Example]:
    """Return the most similar examples by cosine, the best first, without the asked question."""
    if not among.examples:
        return []
    order = np.argsort(-(among.vectors @ query_vector), kind="stable")
    return _leave_out_asked(question, (among.examples[place] for place in order))


def find_examples(
    connection: Connection,
    tenant_ids: Sequence[str],
    *,
    question: str,
    query_vector: Vector,
    acl_groups: Sequence[str] = (),
) -> list[Example]:
    """Return the most similar qa_example nodes of the tenants, without the asked question."""
    found = vector_search_nodes(
        connection,
        tenant_ids,
        query_embedding=query_vector,
        node_types=[NODE_TYPE],
        # The asked question may stand there in several spellings, datasets and tenants.
        top_k=COUNT + 10,
        filters=SearchFilters(acl_groups=acl_groups, without_metadata=MARK),
    )
    node_ids = [each.node_id for each in found]
    nodes = read_nodes(connection, tenant_ids, node_ids=node_ids, acl_groups=acl_groups)
    examples = (_read_node(stored.node) for stored in nodes)
    return _leave_out_asked(question, (each for each in examples if each.answer))


def read_example_file(path: Path) -> Iterator[Example]:
    """Yield the examples of a JSON or JSON Lines file, each with a question and an answer."""
    for place, row in enumerate(_read_rows(path), start=1):
        texts = [
            next((row[key] for key in keys if isinstance(row.get(key), str) and row[key]), None)
            if isinstance(row, dict)
            else None
            for keys in (_QUESTION_KEYS, _ANSWER_KEYS)
        ]
        if texts[0] is None or texts[1] is None:
            raise InvalidInput(
                f"{path}: example {place} has no question or no answer.",
                hint="Each has question (or query) and answer (or ground_truth), both texts.",
            )
        yield Example(texts[0], texts[1])


def _leave_out_asked(question: str, examples: Iterator[Example]) -> list[Example]:
    seen = {fold_question(question)}
    chosen: list[Example] = []
    for example in examples:
        folded = fold_question(example.question)
        if folded not in seen:
            seen.add(folded)
            chosen.append(example)
        if len(chosen) == COUNT:
            break
    return chosen


def _read_node(node: Node) -> Example:
    metadata: Mapping[str, object] = node.metadata
    question, answer = metadata.get("question"), metadata.get("answer")
    return Example(
        question if isinstance(question, str) else node.title,
        answer if isinstance(answer, str) else node.content,
    )


def _read_state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc.strerror}).") from exc
    return found.st_mtime_ns, found.st_size


def _read_rows(path: Path) -> list[object]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        loaded = json.loads(text)
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc.strerror}).") from exc
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"{path}: is not JSON or JSON Lines ({exc}).") from exc
    rows = loaded.get("examples") if isinstance(loaded, dict) else loaded
    if not isinstance(rows, list):
        raise InvalidInput(
            f"{path}: is not a list of examples.",
            hint='Give a list, or an object whose "examples" is one.',
        )
    return rows
