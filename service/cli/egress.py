"""contextforge egress: what may leave the machine for a tenant, and what did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, print_json, print_rows

if TYPE_CHECKING:
    from service.types import EgressCall

egress = typer.Typer(
    help="What may be sent to Claude for a tenant, and what was.", no_args_is_help=True
)

TenantOption = Annotated[str, typer.Option("--tenant", help="The tenant.")]


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call as it fits a terminal."""

    started_at: datetime
    purpose: str
    model: str
    outcome: str
    tokens: str
    sha256: str


@egress.command("show")
def show_egress(
    *,
    tenant: TenantOption,
    limit: Annotated[int, typer.Option(min=1, help="How many calls, the newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show a tenant's policy and the calls that were made for it."""
    from service.db.database import open_database
    from service.db.egress import list_egress_calls, read_egress_policies
    from service.db.engine import tenant_transaction
    from service.settings import load_settings

    with (
        open_database(load_settings()) as database,
        tenant_transaction(database.engine, [tenant]) as connection,
    ):
        [policy] = read_egress_policies(connection, [tenant])
        calls = list_egress_calls(connection, [tenant], limit=limit)
    if as_json:
        print_json({**asdict(policy), "calls": [asdict(call) for call in calls]})
        return
    typer.echo(f"Policy of {tenant}: {policy.policy}")
    print_rows([_shorten(call) for call in calls], CallRow, as_json=False)


@egress.command("set")
def set_egress(
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="off, expansion, synthesis or all.")
    ],
    *,
    tenant: TenantOption,
) -> None:
    """Decide what may be sent: nothing, questions (expansion), questions with context, or both."""
    from service.db.egress import set_egress_policy

    with administer() as connection:
        set_egress_policy(connection, tenant, policy=policy)
    typer.echo(f"Policy of {tenant}: {policy}")


def _shorten(call: EgressCall) -> CallRow:
    return CallRow(
        started_at=call.started_at,
        purpose=call.purpose,
        model=call.model,
        outcome=call.outcome or "not known",
        tokens="" if call.input_tokens is None else f"{call.input_tokens} + {call.output_tokens}",
        sha256=call.text_sha256[:8],
    )
