"""contextforge embed."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.output import AsJson, print_json


def embed(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A question.")],
    model: Annotated[
        str | None, typer.Option(help="Another model than EMBEDDING_MODEL, by name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the embedding of a question as pgvector reads it: [0.1,...]."""
    from service.embedding import load_embedder
    from service.settings import load_settings

    embedder = load_embedder(model or load_settings().embedding_model)
    vector = embedder.embed_query(text)
    if as_json:
        values = [float(str(value)) for value in vector]
        print_json({"embedder_version": embedder.version, "embedding": values})
        return
    # str() of a float32 is the shortest text that reads back as the same value.
    typer.echo(f"[{','.join(str(value) for value in vector)}]")
