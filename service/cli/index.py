"""contextforge index: show, retune or rebuild the ANN index."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.comparisons import AcceptChanges, show_comparison
from service.cli.output import AsJson, print_json, print_rows
from service.errors import InvalidInput

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.db.ann_index import AnnPath, Check, HnswOptions, IvfflatOptions
    from service.ingestion.regression import Comparison


class Kind(StrEnum):
    """The kinds of ANN index pgvector has."""

    HNSW = "hnsw"
    IVFFLAT = "ivfflat"


def index(
    *,
    kind: Annotated[
        Kind | None, typer.Option("--type", help="Build an index of this kind.")
    ] = None,
    m: Annotated[int | None, typer.Option(help="HNSW: links a node, 16 unless told.")] = None,
    ef_construction: Annotated[
        int | None, typer.Option(help="HNSW: effort of building, 64 unless told.")
    ] = None,
    lists: Annotated[
        str | None, typer.Option(help="IVFFlat: lists; auto, the default, is the square root.")
    ] = None,
    ef_search: Annotated[int | None, typer.Option(help="HNSW: effort of searching.")] = None,
    probes: Annotated[int | None, typer.Option(help="IVFFlat: lists looked at.")] = None,
    exact_limit: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**31 - 1, help="Rows under the filters up to which search is exact."
        ),
    ] = None,
    accept_changes: AcceptChanges = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Drop an index that was built and not switched to.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the ANN index; with --type build it anew beside the old one and switch, no downtime.

    Before a switch, or before another --ef-search or --probes counts, questions that were really
    asked are searched both ways; where the new way finds less of what is nearest, nothing changes.
    """
    from service.db.ann_index import (
        AnnIndex,
        abort_ann_index,
        describe_ann_index,
        tune_ann_index,
    )
    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.settings import load_settings

    _refuse_useless(kind, hnsw={"--m": m, "--ef-construction": ef_construction}, ivfflat=lists)
    options = kind and _make_options(kind, m=m, ef_construction=ef_construction, lists=lists)
    with open_admin(load_settings()) as admin:
        with owner_transaction(admin.engine) as connection:
            method = kind or Kind(describe_ann_index(connection).method)
        effort = _choose_effort(method, ef_search=ef_search, probes=probes)
        if abort:
            abort_ann_index(admin.engine)
        gate = _Gate(admin.engine, accept=accept_changes)
        if options:
            _build(admin.engine, options, search_effort=effort, check=gate.check)
        elif effort is not None:
            gate.check_effort(effort)
        with owner_transaction(admin.engine) as connection:
            tune_ann_index(connection, search_effort=effort, exact_limit=exact_limit)
            state = describe_ann_index(connection)
    if as_json:
        print_json({**asdict(state), "comparisons": [asdict(each) for each in gate.comparisons]})
        return
    for comparison in gate.comparisons:
        show_comparison(comparison)
    print_rows([state], AnnIndex, as_json=False)


@dataclass(slots=True)
class _Gate:
    """Compares the path in use with the next one, and keeps the figures to be shown."""

    engine: Engine
    accept: bool
    comparisons: list[Comparison] = field(default_factory=list)

    def check(self, old: AnnPath, new: AnnPath) -> None:
        from service.embedding import load_embedder
        from service.ingestion.regression import check_indexes, make_finder

        self.comparisons += check_indexes(
            self.engine,
            old=old,
            new=new,
            find_embedder=make_finder(load_embedder),
            accept=self.accept,
        )

    def check_effort(self, effort: int) -> None:
        """Compare the index in use with itself, searched with another effort."""
        from service.db.ann_index import check_effort, read_ann_path
        from service.db.engine import owner_transaction

        with owner_transaction(self.engine) as connection:
            used = read_ann_path(connection)
        check_effort(used.method, effort)
        self.check(used, replace(used, search_effort=effort))


def _refuse_useless(kind: Kind | None, *, hnsw: dict[str, int | None], ivfflat: str | None) -> None:
    given = [(name, Kind.HNSW) for name, value in hnsw.items() if value is not None]
    given += [("--lists", Kind.IVFFLAT)] if ivfflat is not None else []
    for name, wanted in given:
        if kind is not wanted:
            raise InvalidInput(f"{name} only counts when the index is built: add --type {wanted}.")


def _choose_effort(method: Kind, *, ef_search: int | None, probes: int | None) -> int | None:
    if method is Kind.HNSW and probes is not None:
        raise InvalidInput("--probes is IVFFlat's, and this is HNSW: use --ef-search.")
    if method is Kind.IVFFLAT and ef_search is not None:
        raise InvalidInput("--ef-search is HNSW's, and this is IVFFlat: use --probes.")
    return ef_search if method is Kind.HNSW else probes


def _make_options(
    kind: Kind, *, m: int | None, ef_construction: int | None, lists: str | None
) -> HnswOptions | IvfflatOptions:
    from service.db.ann_index import HnswOptions, IvfflatOptions

    if kind is Kind.HNSW:
        given = {"m": m, "ef_construction": ef_construction}
        return HnswOptions(**{name: value for name, value in given.items() if value is not None})
    if lists in (None, "auto"):
        return IvfflatOptions()
    if not lists.isdecimal():
        raise InvalidInput(f'--lists is "{lists}": give a whole number, or auto.')
    return IvfflatOptions(lists=int(lists))


def _build(
    engine: Engine,
    options: HnswOptions | IvfflatOptions,
    *,
    search_effort: int | None,
    check: Check,
) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from service.db.ann_index import build_ann_index

    console = Console(stderr=True)
    # Without a terminal it would still leave an empty line.
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("build", total=1)
        build_ann_index(
            engine,
            options,
            search_effort=search_effort,
            on_progress=lambda share: progress.update(bar, completed=share),
            check=check,
        )
