"""contextforge ranks: what a tenant's links say about its nodes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import AsJson, print_json, print_rows

if TYPE_CHECKING:
    from service.types import RankState


def ranks(
    tenant: Annotated[str, typer.Option(help="The tenant.")],
    top: Annotated[int, typer.Option(min=1, help="How many nodes to show.")] = 20,
    force: Annotated[bool, typer.Option(help="Compute them anew, however fresh.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute PageRank over a tenant's links if they changed, and show the highest."""
    from service.db.database import open_database
    from service.db.engine import tenant_transaction
    from service.db.ranks import list_top_ranks
    from service.retrieval.ranks import refresh_ranks
    from service.settings import load_settings
    from service.types import RankedNode

    with open_database(load_settings()) as database:
        state = refresh_ranks(database.engine, tenant, force=force)
        with tenant_transaction(database.engine, [tenant]) as connection:
            nodes = list_top_ranks(connection, tenant, limit=top)
    if as_json:
        print_json({"state": state and asdict(state), "nodes": [asdict(node) for node in nodes]})
        return
    print_rows(nodes, RankedNode, as_json=False)
    typer.echo(_describe(state), err=True)


def _describe(state: RankState | None) -> str:
    if state is None:
        return "Ranks are being computed by someone else; ask again in a moment."
    return (
        f"{state.links} links between {state.linked_nodes} nodes, {state.articles} articles in all;"
        f" computed {state.computed_at:%Y-%m-%d %H:%M}."
    )
