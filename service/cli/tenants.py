"""contextforge tenants: create, list, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, Yes, print_rows
from service.errors import NotFound

tenants = typer.Typer(help="The tenants of this database.", no_args_is_help=True)

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.")]


@tenants.command("create")
def create_tenant(
    tenant_id: TenantId,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    lang: Annotated[
        str, typer.Option(help="Language of its texts where they do not say, such as en or de.")
    ] = "en",
) -> None:
    """Create a tenant; one that exists stays as it is."""
    from service.db import registry

    with administer() as connection:
        new = registry.create_tenant(connection, tenant_id, display_name=name, lang=lang)
    typer.echo(f"Tenant {tenant_id} {'is created' if new else 'was there already'}.")


@tenants.command("list")
def list_tenants(as_json: AsJson = False) -> None:
    """List the tenants and how many nodes each has."""
    from service.db import registry
    from service.types import Tenant

    with administer() as connection:
        rows = registry.list_tenants(connection)
    print_rows(rows, Tenant, as_json=as_json)


@tenants.command("delete")
def delete_tenant(tenant_id: TenantId, yes: Yes = False) -> None:
    """Delete a tenant with its nodes, grants, and the keys that open nothing else."""
    from service.db import registry

    if not yes:
        typer.confirm(f"Delete tenant {tenant_id} with everything it has?", abort=True)
    with administer() as connection:
        if not registry.delete_tenant(connection, tenant_id):
            raise NotFound(f'There is no tenant "{tenant_id}".')
    typer.echo(f"Tenant {tenant_id} is deleted.")
