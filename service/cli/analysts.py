"""contextforge analysts: grant, revoke, list."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, Yes, print_rows
from service.cli.tenants import TenantId
from service.errors import NotFound

analysts = typer.Typer(help="Database roles that may read tenants by SQL.", no_args_is_help=True)

RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="A role of the database server.")]


@analysts.command("grant")
def grant_tenant(role_name: RoleName, tenant_id: TenantId) -> None:
    """Let a database role read a tenant."""
    from service.db import registry

    with administer() as connection:
        new = registry.grant_tenant(connection, role_name, tenant_id)
    typer.echo(f"Role {role_name} {'may now read' if new else 'could read already'} {tenant_id}.")


@analysts.command("revoke")
def revoke_tenant(role_name: RoleName, tenant_id: TenantId, yes: Yes = False) -> None:
    """Take a tenant from a database role."""
    from service.db import registry

    if not yes:
        typer.confirm(f"Take tenant {tenant_id} from role {role_name}?", abort=True)
    with administer() as connection:
        if not registry.revoke_tenant(connection, role_name, tenant_id):
            raise NotFound(f'Role "{role_name}" has no grant for tenant "{tenant_id}".')
    typer.echo(f"Role {role_name} may no longer read {tenant_id}.")


@analysts.command("list")
def list_grants(as_json: AsJson = False) -> None:
    """List which role may read which tenant."""
    from service.db import registry
    from service.types import AnalystGrant

    with administer() as connection:
        rows = registry.list_grants(connection)
    print_rows(rows, AnalystGrant, as_json=as_json)
