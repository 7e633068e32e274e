"""contextforge answer: ask a tenant's knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from service.answering import Answerer, Prepared
    from service.synthesis.answer import Answer
    from service.synthesis.citations import Citation
    from service.synthesis.stream import AnswerEvent


def answer(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant to ask.")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Search only this dataset of the tenant.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group whose nodes may be read; repeat it."),
    ] = None,
    max_results: Annotated[int, typer.Option(help="Documents to answer from.")] = 5,
    few_shot: Annotated[
        Path | None,
        typer.Option("--few-shot", help="Examples (JSON, JSON Lines) instead of the tenant's."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print the answer while it is written.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show what each step of retrieval and packing did.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from what a tenant has, with its sources.

    Claude writes it where there is a key and the tenant's egress policy allows synthesis; else it
    is made of the sources' own sentences and nothing leaves this machine.
    """
    from service.retrieval.request import RetrievalRequest
    from service.types import SearchFilters

    request = RetrievalRequest(
        question,
        (tenant,),
        max_results=max_results,
        dataset_name=dataset,
        filters=SearchFilters(acl_groups=tuple(group or ())),
        changes={"trace": True} if trace else {},
    )
    with _open_answerer() as answerer:
        ready = answerer.prepare(request, few_shot_path=few_shot)
        shown = ready.to_trace() if trace else None
        if stream:
            _show_stream(answerer, ready, trace=shown, as_json=as_json)
        else:
            _show_answer(answerer.answer(ready), trace=shown, as_json=as_json)


@contextmanager
def _open_answerer() -> Iterator[Answerer]:
    from service.answering import Answerer
    from service.db.database import open_database
    from service.embedding import load_embedder
    from service.llm import open_client
    from service.settings import load_settings

    settings = load_settings()
    key = settings.anthropic_api_key
    claude = None
    if key is not None:
        claude = open_client(key.get_secret_value(), settings.anthropic_base_url)
    with open_database(settings) as database:
        embedder = load_embedder(settings.embedding_model)
        yield Answerer(database.engine, settings, embedder=embedder, claude=claude)


def _show_answer(given: Answer, *, trace: dict[str, Any] | None, as_json: bool) -> None:
    if as_json:
        print_json(given.to_json() if trace is None else {**given.to_json(), "trace": trace})
        return
    typer.echo(given.answer)
    _show_end(given, trace)


def _show_stream(
    answerer: Answerer, ready: Prepared, *, trace: dict[str, Any] | None, as_json: bool
) -> None:
    import json

    from service.synthesis.stream import describe_event

    if not as_json:
        _follow(answerer.stream(ready), trace)
        return
    for event in answerer.stream(ready):
        typer.echo(json.dumps({"event": event.event, "data": describe_event(event)}))
    if trace is not None:
        typer.echo(json.dumps({"event": "trace", "data": trace}))


def _follow(events: Iterator[AnswerEvent], trace: dict[str, Any] | None) -> None:
    from service.synthesis.stream import FinalAnswer, MessageDelta, StreamError

    failed = False
    for event in events:
        match event:
            case MessageDelta():
                typer.echo(event.text, nl=False)
            case StreamError():
                failed = True
                typer.echo(f"\n[{event.message} What stands above is void.]\n")
            case FinalAnswer():
                typer.echo(event.answer.answer if failed else "")
                _show_end(event.answer, trace)
            case _:
                pass


def _show_end(given: Answer, trace: dict[str, Any] | None) -> None:
    if given.citations:
        typer.echo("\nSources:")
    for citation in given.citations:
        typer.echo(f"  [{citation.number}] {_describe(citation)}")
    typer.echo(f"{given.mode}: {given.notice}" if given.notice else given.mode, err=True)
    if trace is not None:
        print_json(trace)


def _describe(citation: Citation) -> str:
    titles = dict.fromkeys(title for title in (citation.title, citation.header) if title)
    named = ", ".join(titles)
    return f"{named} <{citation.url}>" if citation.url else named
