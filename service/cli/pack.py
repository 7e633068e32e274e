"""contextforge pack: what a question finds as a context within a token budget, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.output import AsJson, print_json
from service.errors import SettingsError

if TYPE_CHECKING:
    from rich.table import Table
    from sqlalchemy import Engine

    from service.packing import ItemTrace, Pack
    from service.settings import Settings

_BAR = 40


def pack(
    question: Annotated[str, typer.Argument(help="What the context is for.")],
    *,
    tenant: Annotated[
        list[str], typer.Option("--tenant", help="The tenant to search; may be given again.")
    ],
    budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens, instead of CONTEXT_TOKEN_BUDGET.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Search only this dataset.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group whose nodes may be read; repeat it."),
    ] = None,
    max_results: Annotated[int, typer.Option(help="Most nodes to pack from, up to 20.")] = 20,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what is in, what is not, and why.")
    ] = False,
    verify_tokens: Annotated[
        bool,
        typer.Option("--verify-tokens", help="Let Claude count too; sends it the context."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Pack what a question finds into a context that never exceeds its budget."""
    from service.answering import Answerer
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.packing import pack as pack_candidates
    from service.pipeline import Pipeline
    from service.retrieval.request import RetrievalRequest
    from service.settings import load_settings
    from service.types import SearchFilters

    settings = load_settings()
    request = RetrievalRequest(
        question,
        tuple(tenant),
        max_results=max_results,
        dataset_name=dataset,
        filters=SearchFilters(acl_groups=tuple(group or ())),
        # Whoever packs by hand wants to see what there is; how many of a document, packing says.
        changes={"multidoc": False, "confidence_threshold": 0.0},
    )
    counted = None
    with open_database(settings) as database:
        embedder = load_embedder(settings.embedding_model)
        pipeline = Pipeline(database.engine, settings, embedder=embedder)
        answerer = Answerer(database.engine, settings, embedder=embedder, pipeline=pipeline)
        found = pipeline.retrieve(request).candidates
        packed = answerer.pack(found, request, budget=budget) or pack_candidates([])
        if verify_tokens and packed.text:
            counted = _count_by_claude(packed, database.engine, settings, tenant_ids=tuple(tenant))
    if as_json:
        print_json(_describe(packed, counted))
    else:
        _print(packed, explain=explain, counted=counted)


def _count_by_claude(
    packed: Pack, engine: Engine, settings: Settings, *, tenant_ids: tuple[str, ...]
) -> int:
    """Ask Claude for its own count, where the tenants' egress policy allows synthesis."""
    from service.llm import open_client
    from service.llm.counting import count_input_tokens
    from service.synthesis.egress import EgressRecorder

    key = settings.anthropic_api_key
    if key is None:
        raise SettingsError("--verify-tokens needs ANTHROPIC_API_KEY.")
    return count_input_tokens(
        open_client(key.get_secret_value(), settings.anthropic_base_url),
        model=settings.synthesis_model,
        text=packed.text,
        record=EgressRecorder(engine, tenant_ids, "synthesis"),
    )


def _describe(packed: Pack, counted: int | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "text": packed.text,
        "tokens": packed.tokens,
        "budget": packed.budget,
        "blocks": [asdict(block) for block in packed.blocks],
        "trace": packed.trace.to_json(),
    }
    return described if counted is None else {**described, "claude_tokens": counted}


def _print(packed: Pack, *, explain: bool, counted: int | None) -> None:
    from rich.console import Console

    if explain:
        console = Console(markup=False, highlight=False)
        console.print(_draw_bar(packed))
        console.print(_tabulate(packed))
        for line in _list_reunions(packed):
            console.print(line)
    else:
        typer.echo(packed.text, nl=False)
        typer.echo(_summarise(packed), err=True)
    if counted is not None:
        share = counted / packed.tokens - 1
        typer.echo(
            f"Claude counts {counted} tokens, with the frame of a message: {share:+.1%}.", err=True
        )


def _summarise(packed: Pack) -> str:
    blocks = f"{len(packed.blocks)} block{'' if len(packed.blocks) == 1 else 's'}"
    return f"{packed.tokens} of {packed.budget} tokens, {blocks}"


def _draw_bar(packed: Pack) -> str:
    used = round(_BAR * packed.tokens / packed.budget)
    return f"{'█' * used}{'░' * (_BAR - used)} {_summarise(packed)}"


def _tabulate(packed: Pack) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("in", "node", "tokens", "score", "bonus", "novelty", "value"):
        table.add_column(name, no_wrap=True, justify="right")
    table.add_column("title")
    table.add_column("why not")
    for item in packed.trace.items:
        table.add_row(
            "" if item.block is None else f"[{item.block}]",
            str(item.node_id),
            str(item.tokens),
            f"{item.score:.3f}",
            f"{item.bonus:.3f}",
            f"{item.novelty:.2f}",
            "" if item.value is None else f"{item.value:.3f}",
            item.section_path or item.title,
            _say_why(item),
        )
    return table


def _say_why(item: ItemTrace) -> str:
    if item.outcome == "selected":
        return "trimmed to whole sentences" if item.trimmed else ""
    other = "" if item.other is None else f" ({item.other})"
    why = f"{item.reason}{other}: {item.detail}"
    return f"in beside its neighbour, else {why}" if item.outcome == "reunited" else why


def _list_reunions(packed: Pack) -> list[str]:
    return [
        f"[{each.block}] node {each.node_id} came with its neighbour, {each.tokens} tokens"
        for each in packed.trace.reunions
    ]
