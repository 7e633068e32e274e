"""contextforge search: what a question finds, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from service.pipeline import Retrieval
    from service.retrieval.trace import StepTrace
    from service.types import Candidate

_BAR = 10
_SNIPPET = 80


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A node as it is printed for programs."""

    node_id: int
    external_id: str
    node_type: str
    title: str
    header: str | None
    url: str | None
    score: float
    confidence: float | None
    vector_score: float | None
    bm25_score: float
    content: str


def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    *,
    tenant: Annotated[
        list[str], typer.Option("--tenant", help="The tenant to search; may be given again.")
    ],
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Search only this dataset.")
    ] = None,
    node_type: Annotated[
        list[str] | None, typer.Option("--type", help="A type of nodes to keep; repeat it.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group whose nodes may be read; repeat it."),
    ] = None,
    max_results: Annotated[int, typer.Option(help="Most nodes to show, up to 20.")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each step did, and why nodes left.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search a tenant as the service does: both legs, fused, ranked by links, without stubs."""
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.pipeline import Pipeline
    from service.retrieval.request import RetrievalRequest
    from service.settings import load_settings
    from service.types import SearchFilters

    settings = load_settings()
    request = RetrievalRequest(
        question,
        tuple(tenant),
        max_results=max_results,
        node_types=tuple(node_type) if node_type else None,
        dataset_name=dataset,
        filters=SearchFilters(acl_groups=tuple(group or ())),
        # Whoever searches by hand wants to see what is there: the gate only says what it thinks.
        changes={"multidoc": False, "confidence_threshold": 0.0, "trace": explain},
    )
    with open_database(settings) as database:
        embedder = load_embedder(settings.embedding_model)
        found = Pipeline(database.engine, settings, embedder=embedder).retrieve(request)
    if as_json:
        print_json(_describe(found))
    else:
        _print(found, threshold=settings.context_confidence_threshold)


def _describe(found: Retrieval) -> dict[str, Any]:
    described: dict[str, Any] = {
        "intent": found.intent,
        "confidence": found.confidence,
        "statement": found.statement,
        "nodes": [asdict(_describe_node(each)) for each in found.candidates],
    }
    if found.trace is not None:
        described["trace"] = found.trace.to_json()
    return described


def _describe_node(candidate: Candidate) -> FoundNode:
    node = candidate.node
    return FoundNode(
        node.node_id,
        node.external_id,
        node.node_type,
        node.title,
        node.header,
        node.url,
        score=candidate.score,
        confidence=candidate.confidence,
        vector_score=candidate.vector_score,
        bm25_score=candidate.bm25_score,
        content=node.content,
    )


def _print(found: Retrieval, *, threshold: float) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if not found.candidates:
        console.print("Nothing was found.")
    else:
        console.print(tabulate_candidates(found.candidates))
    if found.confidence is not None and found.confidence < threshold:
        typer.echo(
            f"The best confidence is {found.confidence:.2f}, below {threshold:g}: no context would "
            "be made of this.",
            err=True,
        )
    for step in found.trace.steps if found.trace is not None else ():
        _print_step(step)


def tabulate_candidates(candidates: tuple[Candidate, ...]) -> Table:
    """Return candidates as a table with score bars."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("node", "score", "", "confidence", "bm25"):
        table.add_column(name, no_wrap=True, justify="left" if not name else "right")
    table.add_column("title")
    for candidate in candidates:
        confidence = candidate.confidence
        table.add_row(
            str(candidate.node.node_id),
            f"{candidate.score:.3f}",
            _draw_bar(candidate.score),
            "" if confidence is None else f"{confidence:.2f}",
            f"{candidate.bm25_score:.1f}",
            _name(candidate),
        )
    return table


def _draw_bar(score: float) -> str:
    return "█" * round(max(0.0, min(1.0, score)) * _BAR)


def _name(candidate: Candidate) -> str:
    node = candidate.node
    name = f"{node.title}: {node.header}" if node.header else node.title
    snippet = " ".join(node.content.split())
    return name or (snippet if len(snippet) <= _SNIPPET else f"{snippet[:_SNIPPET]}...")


def _print_step(step: StepTrace) -> None:
    notes = ", ".join(f"{name} {value}" for name, value in step.notes.items())
    typer.echo(f"{step.step}: {len(step.left)} nodes, {step.milliseconds:.1f} ms. {notes}".rstrip())
    for drop in step.drops:
        typer.echo(f"  without {drop.node_id}: {drop.reason}")
