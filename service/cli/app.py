"""Every command in one place, and what an error becomes: a line on stderr and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, NoReturn

import typer

from service import __version__
from service.cli.ab import ab
from service.cli.analysts import analysts
from service.cli.answer import answer
from service.cli.audit import audit
from service.cli.check_examples import check_examples
from service.cli.compare import compare
from service.cli.demo import demo
from service.cli.doctor import doctor
from service.cli.egress import egress
from service.cli.embed import embed
from service.cli.evaluate import evaluate
from service.cli.index import index
from service.cli.ingest import ingest
from service.cli.ingest_schema import ingest_examples, ingest_schema
from service.cli.jobs import jobs
from service.cli.keys import keys
from service.cli.maintain import maintain
from service.cli.mcp import mcp
from service.cli.pack import pack
from service.cli.profile import profile
from service.cli.psql import psql
from service.cli.ranks import ranks
from service.cli.reembed import reembed
from service.cli.schema import migrate
from service.cli.search import search
from service.cli.serving import run, serve
from service.cli.settings import settings
from service.cli.stats import stats
from service.cli.tenants import tenants
from service.cli.tune import tune
from service.cli.worker import worker
from service.errors import ServiceError, SettingsError

app = typer.Typer(
    name="contextforge",
    help="Hybrid retrieval on PostgreSQL: the service and its administration.",
    no_args_is_help=True,
    add_completion=False,
    # Their tracebacks print local variables, passwords among them.
    pretty_exceptions_enable=False,
)
for command in (
    *(run, serve, migrate, demo, ingest, ingest_schema, ingest_examples),
    *(doctor, maintain, index, ranks, settings, embed),
):
    app.command()(command)
app.command()(reembed)
app.command()(audit)
app.command()(stats)
app.command()(search)
app.command()(pack)
app.command()(answer)
app.command()(check_examples)
app.command("eval")(evaluate)
app.command()(compare)
app.command()(tune)
app.command()(worker)
app.command()(mcp)
app.command(context_settings={"ignore_unknown_options": True})(psql)
app.add_typer(tenants, name="tenants")
app.add_typer(keys, name="keys")
app.add_typer(profile, name="profile")
app.add_typer(analysts, name="analysts")
app.add_typer(egress, name="egress")
app.add_typer(jobs, name="jobs")
app.add_typer(ab, name="ab")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contextforge {__version__}")
        raise typer.Exit


@app.callback()
def describe(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    """Hybrid retrieval on PostgreSQL: the service and its administration."""


class _Terminated(SystemExit):
    """Unwinds the command that a signal ends."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def run_command_line(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 refused or failed, 2 wrong usage or settings."""
    # A terminated command still releases the embedded server.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        app(args=arguments, prog_name="contextforge")
    except ServiceError as exc:
        typer.echo(f"error: {exc}", err=True)
        sys.exit(2 if isinstance(exc, SettingsError) else 1)
    except _Terminated as exc:
        # Ends as the signal would have ended it: supervisors take that for a clean stop.
        signal.signal(exc.number, signal.SIG_DFL)
        signal.raise_signal(exc.number)


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise _Terminated(number)
