"""python -m benchmarks.packing: what a context holds for its tokens, against cutting by characters.

Reported for each budget: answer recall (a sentence with the answer is in the context), redundancy
(tokens of the context / tokens of its different sentences), garbage (stubs, and every section after
the first that says the same, among the packed sections), planted (stubs and copies among them,
whether or not their original is in as well), tokens, and the share of contexts over their budget.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from sqlalchemy import Connection

from benchmarks.packing_corpus import (
    COPIES,
    SENTENCE_END,
    SQUAD,
    STUBS,
    AnsweredQuestion,
    make_groups,
    normalise,
    read_questions,
)
from benchmarks.stand import Stand, create_tenant, open_stand, time_calls
from service.db.context import list_neighbours, read_nodes
from service.db.engine import tenant_transaction
from service.db.maintenance import merge_segments
from service.db.search import hybrid_search_nodes
from service.embedding import Embedder, load_embedder
from service.ingestion.ingest import Ingestion
from service.packing import pack
from service.retrieval.quality import filter_quality
from service.tokens import count_tokens
from service.types import Candidate, Node

TENANT = "packing"
BUDGETS = (1000, 2000, 4000, 8000)
CHARACTERS_A_TOKEN = 4

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found, with the neighbours of all of it."""

    question: AnsweredQuestion
    candidates: tuple[Candidate, ...]
    neighbours: Mapping[int, Sequence[Node]]


@dataclass(frozen=True, slots=True)
class Context:
    """A context made in some way: its text, the texts of its sources, the nodes in it."""

    text: str
    bodies: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(slots=True)
class Tally:
    """Figures of many contexts of one way and budget."""

    recall: list[float] = field(default_factory=list)
    redundancy: list[float] = field(default_factory=list)
    garbage: list[float] = field(default_factory=list)
    planted: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    over_budget: list[float] = field(default_factory=list)

    def add(self, context: Context, question: AnsweredQuestion, *, budget: int) -> None:
        """Judge one context."""
        text, tokens = normalise(context.text), count_tokens(context.text)
        sentences = (each for body in context.bodies for each in SENTENCE_END.split(body))
        distinct = {normalise(each): each for each in sentences}
        self.recall.append(any(each in text for each in question.answering))
        self.redundancy.append(tokens / max(1, count_tokens(" ".join(distinct.values()))))
        self.garbage.append(_share_of_garbage(context.nodes))
        planted = (node.external_id.startswith((COPIES, STUBS)) for node in context.nodes)
        self.planted.append(mean(planted) if context.nodes else 0.0)
        self.tokens.append(tokens)
        self.over_budget.append(tokens > budget)

    def summarise(self) -> dict[str, float]:
        """Return the mean of each figure."""
        return {name: round(mean(getattr(self, name)), 4) for name in self.__slots__}


Way = Callable[[Found, int], Context]


def main(
    *,
    questions: Annotated[int, typer.Option(help="How many questions.")] = 2000,
    pool: Annotated[int, typer.Option(help="Candidates a question.")] = 100,
    data: Annotated[Path, typer.Option(help="Folder of the evaluation set.")] = SQUAD,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 7,
    output: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/packing.json"),
) -> None:
    """Measure the quality and the speed of packing on this machine."""
    if not (data / "corpus.jsonl").is_file():
        console.print(f"No evaluation set at {data}: give --data, or nothing can be measured.")
        raise typer.Exit(1)
    with open_stand() as stand:
        results = measure_packing(stand, data, questions=questions, pool=pool, seed=seed)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def measure_packing(
    stand: Stand, data: Path, *, questions: int, seed: int, pool: int = 100
) -> dict[str, object]:
    """Load articles with planted copies and stubs, and pack what the questions find."""
    asked = read_questions(data, count=questions, seed=seed)
    embedder = load_embedder()
    _fill(stand, embedder, data=data, seed=seed)
    return {
        "questions": len(asked),
        "pool": pool,
        "seed": seed,
        "speed": measure_speed(stand, embedder, asked[:50]),
        "quality": measure_quality(_search_all(stand, embedder, asked, pool=pool)),
    }


def measure_quality(found: Iterable[Found]) -> dict[str, dict[str, dict[str, float]]]:
    """Make the context of every question in each way, at each budget."""
    tallies = {name: {budget: Tally() for budget in BUDGETS} for name in WAYS}
    for each in found:
        for name, way in WAYS.items():
            for budget in BUDGETS:
                context = way(each, budget)
                tallies[name][budget].add(context, each.question, budget=budget)
    return {
        name: {str(budget): tally.summarise() for budget, tally in tallies[name].items()}
        for name in WAYS
    }


def measure_speed(
    stand: Stand, embedder: Embedder, asked: Sequence[AnsweredQuestion]
) -> dict[str, object]:
    """Time pack with 200 candidates and their neighbours at 8000 tokens; processor time too."""
    found = _search_all(stand, embedder, asked, pool=200)
    spent: list[float] = []

    def call(each: Found) -> Callable[[], object]:
        def run() -> None:
            start = time.thread_time()
            pack(
                each.candidates,
                budget=8000,
                question=each.question.text,
                neighbours=each.neighbours,
            )
            spent.append((time.thread_time() - start) * 1000)

        return run

    latency = time_calls([call(each) for each in found])
    return {
        "candidates": round(mean(len(each.candidates) for each in found), 1),
        "p50_ms": latency.p50,
        "p95_ms": latency.p95,
        "p50_processor_ms": round(median(spent), 3),
    }


def cut_characters(found: Found, budget: int) -> Context:
    """The baseline: by score, four characters a token, the last one cut off."""
    room, texts, nodes = budget * CHARACTERS_A_TOKEN, [], []
    for candidate in found.candidates:
        if room <= 0:
            break
        texts.append(candidate.node.content[:room])
        nodes.append(candidate.node)
        room -= len(candidate.node.content)
    return Context("\n\n".join(texts), tuple(texts), tuple(nodes))


def pack_found(found: Found, budget: int, *, multi_document: bool = True) -> Context:
    """What the service packs of the candidates it is given."""
    packed = pack(
        found.candidates,
        budget=budget,
        question=found.question.text,
        neighbours=found.neighbours,
        multi_document=multi_document,
    )
    nodes = {each.node.node_id: each.node for each in found.candidates}
    for beside in found.neighbours.values():
        nodes.update((node.node_id, node) for node in beside)
    packed_nodes = tuple(nodes[each] for block in packed.blocks for each in block.node_ids)
    return Context(packed.text, tuple(block.body for block in packed.blocks), packed_nodes)


def drop_stubs(found: Found) -> Found:
    """The step before packing: what is too short to answer anything is left out."""
    kept = filter_quality(found.candidates, question=found.question.text).candidates
    return Found(found.question, tuple(kept), found.neighbours)


WAYS: dict[str, Way] = {
    "baseline": cut_characters,
    "baseline_after_quality_filter": lambda found, budget: cut_characters(
        drop_stubs(found), budget
    ),
    "pack_after_quality_filter": lambda found, budget: pack_found(drop_stubs(found), budget),
    "pack_after_quality_filter_cap_2": lambda found, budget: pack_found(
        drop_stubs(found), budget, multi_document=False
    ),
    "pack_alone": pack_found,
}


def _fill(stand: Stand, embedder: Embedder, *, data: Path, seed: int) -> None:
    create_tenant(stand, TENANT)
    with console.status("ingesting articles, copies and stubs"):
        report = Ingestion(stand.engine, TENANT, embedder).run(make_groups(data, seed=seed))
    if report.rejected:
        raise RuntimeError(report.rejected[0].reason)
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        merge_segments(connection, TENANT, everything=True)


def _search_all(
    stand: Stand, embedder: Embedder, asked: Sequence[AnsweredQuestion], *, pool: int
) -> list[Found]:
    with tenant_transaction(stand.engine, [TENANT]) as connection:
        return [
            _search(connection, embedder, each, pool=pool)
            for each in track(asked, description="search", console=console, transient=True)
        ]


def _search(
    connection: Connection, embedder: Embedder, question: AnsweredQuestion, *, pool: int
) -> Found:
    hits = hybrid_search_nodes(
        connection,
        [TENANT],
        query_text=question.text,
        query_embedding=embedder.embed_query(question.text),
        top_k=pool,
    )
    ids = [hit.node_id for hit in hits]
    stored = read_nodes(connection, [TENANT], node_ids=ids, with_embeddings=True)
    candidates = tuple(
        Candidate(each.node, hit.combined_score, embedding=each.embedding)
        for hit, each in zip(hits, stored, strict=True)
    )
    return Found(question, candidates, list_neighbours(connection, [TENANT], node_ids=ids))


def _share_of_garbage(nodes: Sequence[Node]) -> float:
    """Stubs, and what an earlier node of the context has said already."""
    seen: set[str] = set()
    garbage = 0
    for node in nodes:
        if node.external_id.startswith(STUBS) or _family(node) in seen:
            garbage += 1
        else:
            seen.add(_family(node))
    return garbage / len(nodes) if nodes else 0.0


def _family(node: Node) -> str:
    """The section that a node is, or is a copy of."""
    if node.external_id.startswith(COPIES):
        return node.external_id.removeprefix(COPIES).split(".md")[0].rpartition("-")[0]
    return f"{node.doc_title}-{node.order_index}"


if __name__ == "__main__":
    typer.run(main)
