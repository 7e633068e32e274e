"""contextforge maintain: fold segments, drop dead postings, fill the ANN index, forget the old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.output import AsJson, print_rows
from service.errors import NotFound

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.db.maintenance import SegmentState
    from service.settings import Settings

# A tenth of dead postings costs a tenth of a keyword search; folding everything costs minutes.
DEAD_SHARE_TO_FOLD = 0.2


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done for a tenant."""

    tenant_id: str
    segments_folded: int
    vectors_indexed: int
    ranks_computed: bool
    jobs_pruned: int
    traces_pruned: int
    experiment_rolled_back: bool


def maintain(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant.")] = None,
    everything: Annotated[
        bool, typer.Option(help="Fold all segments into one, however few are dead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fold segments, drop dead postings and index new vectors; searches go on meanwhile.

    Ranks are computed anew for tenants whose links changed.
    Jobs that ended CONTEXTFORGE_JOB_RETENTION_DAYS ago are forgotten, and traces of
    CONTEXTFORGE_TRACE_RETENTION_DAYS ago, with their feedback. An experiment that does harm is
    stopped. What each tenant stores is put down once a day, for contextforge stats.
    """
    from rich.console import Console
    from rich.progress import track

    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.db.maintenance import list_segment_states, refresh_planner_statistics
    from service.settings import load_settings

    settings = load_settings()
    with open_admin(settings) as admin:
        with owner_transaction(admin.engine) as connection:
            states = list_segment_states(connection)
        chosen = [state for state in states if tenant in (None, state.tenant_id)]
        if tenant is not None and not chosen:
            raise NotFound(f'There is no tenant "{tenant}".')
        console = Console(stderr=True)
        done = [
            _maintain_tenant(admin.engine, state, everything=everything, settings=settings)
            for state in track(
                chosen, "maintain", console=console, transient=True, disable=not console.is_terminal
            )
        ]
        with owner_transaction(admin.engine) as connection:
            refresh_planner_statistics(connection)
    print_rows(done, Upkeep, as_json=as_json)


def _maintain_tenant(
    engine: Engine, state: SegmentState, *, everything: bool, settings: Settings
) -> Upkeep:
    from service.db.engine import owner_transaction
    from service.db.jobs import prune_jobs
    from service.db.maintenance import merge_segments, refresh_ann
    from service.db.stats import mark_size
    from service.db.traces import prune_traces
    from service.quality.experiments import roll_back_if_worse
    from service.retrieval.ranks import update_ranks

    job_age = timedelta(days=settings.contextforge_job_retention_days)
    trace_age = timedelta(days=settings.contextforge_trace_retention_days)
    fold_all = everything or state.dead_share > DEAD_SHARE_TO_FOLD
    with owner_transaction(engine) as connection:
        folded = merge_segments(connection, state.tenant_id, everything=fold_all)
    indexed, moved = 0, -1
    while moved:
        # Batches, so that what is done stays done and no lock is held for long.
        with owner_transaction(engine) as connection:
            moved = refresh_ann(connection, state.tenant_id)
        indexed += moved
    with owner_transaction(engine) as connection:
        ranked = update_ranks(connection, state.tenant_id)
    with owner_transaction(engine) as connection:
        jobs = prune_jobs(connection, state.tenant_id, older_than=job_age)
        traces = prune_traces(connection, state.tenant_id, older_than=trace_age)
        ended = roll_back_if_worse(connection, state.tenant_id, settings=settings) is not None
        mark_size(connection, state.tenant_id)
    return Upkeep(state.tenant_id, folded, indexed, ranked, jobs, traces, ended)
