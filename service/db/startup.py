"""What must hold before the service touches a database: a safe login, forced policies, the head."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from service.db.engine import OWNER
from service.db.migrate import check_server, head_revision
from service.errors import DatabaseUnsuitable, SettingsError, UnsafeLogin

# Tables with a column tenant_id that are no tenant tables: nobody but the owner has grants on them.
REGISTRY_TABLES = ("tenants", "analyst_grants", "jobs")
# In a schema shared with other programs these are ours whoever owns them.
PUBLIC_TABLES = ("knowledge_nodes", "node_links", "node_ranks")

_MIGRATE = "Run: contextforge migrate"
_OWN_LOGIN = (
    "Use a login of its own: contextforge migrate creates the one DATABASE_URL names and makes it "
    "a member of contextforge_api, which is all it needs."
)


@dataclass(frozen=True, slots=True)
class TenantTable:
    """A table with rows of tenants, and what protects them."""

    name: str
    owner: str
    owned_by_login: bool
    forced: bool
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Login:
    """What decides whether the service may run with a login; None where a role is missing."""

    name: str
    superuser: bool
    bypasses: bool
    owner: bool | None
    api: bool | None
    analyst: bool | None


def check_login(connection: Connection) -> None:
    """Refuse a login that could see too much, and a database whose tenants are not kept apart."""
    check_server(connection)
    login = _read_login(connection)
    _refuse_unrestricted(login)
    if login.owner is None:
        raise DatabaseUnsuitable("This database has never been migrated.", hint=_MIGRATE)
    _refuse_privileged(login)
    check_revision(connection)
    for table in list_tenant_tables(connection):
        _refuse_unprotected(login, table)


def check_revision(connection: Connection) -> None:
    """Refuse a database that is not at the newest migration this code knows."""
    known = connection.exec_driver_sql(
        "select to_regprocedure('contextforge.schema_revision()')"
    ).scalar()
    if known is None:
        raise DatabaseUnsuitable("This database has never been migrated.", hint=_MIGRATE)
    found = connection.exec_driver_sql("select contextforge.schema_revision()").scalar()
    head = head_revision()
    if found != head:
        raise DatabaseUnsuitable(
            f"This database is at migration {found}, this version of ContextForge needs {head}.",
            hint=f"{_MIGRATE} (or, if the database is the newer one, install its version).",
        )


def check_dimension(connection: Connection, embedding_dim: int) -> None:
    """Refuse an EMBEDDING_DIM that is not the one the database was made with."""
    stored = connection.exec_driver_sql("select contextforge.embedding_dim()").scalar()
    if stored != embedding_dim:
        raise SettingsError(
            f"EMBEDDING_DIM is {embedding_dim}, but this database was made with {stored}.",
            hint=f"Set EMBEDDING_DIM={stored}, or migrate an empty database and ingest again.",
        )


def list_tenant_tables(connection: Connection) -> list[TenantTable]:
    """Return every table with rows of tenants, by name, as the catalog describes it."""
    statement = """
        select
            format('%%I.%%I', n.nspname, c.relname),
            pg_get_userbyid(c.relowner)::text,
            pg_has_role(session_user, c.relowner, 'member'),
            c.relrowsecurity and c.relforcerowsecurity,
            array(select p.polname::text from pg_policy as p where p.polrelid = c.oid order by 1)
        from pg_catalog.pg_class as c
        join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
        join pg_catalog.pg_attribute as a
            on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
        where c.relkind in ('r', 'p')
            and (
                n.nspname = 'contextforge' and c.relname <> all(%s)
                or n.nspname = 'public'
                and (c.relname = any(%s) or pg_get_userbyid(c.relowner) = %s)
            )
        order by 1
    """
    values = (list(REGISTRY_TABLES), list(PUBLIC_TABLES), OWNER)
    rows = connection.exec_driver_sql(statement, values)
    return [
        TenantTable(name, owner, owned_by_login, forced, tuple(policies))
        for name, owner, owned_by_login, forced, policies in rows
    ]


def _read_login(connection: Connection) -> _Login:
    # Both names: a login whose configuration sets a role has two.
    row = connection.exec_driver_sql("""
        with roles as (
            select
                r.*,
                (select pg_has_role(r.oid, o.oid, 'member') from pg_roles as o
                 where o.rolname = 'contextforge_owner') as owner,
                (select pg_has_role(r.oid, o.oid, 'usage') from pg_roles as o
                 where o.rolname = 'contextforge_api') as api,
                (select pg_has_role(r.oid, o.oid, 'usage') from pg_roles as o
                 where o.rolname = 'contextforge_analyst') as analyst
            from pg_catalog.pg_roles as r
            where r.rolname in (session_user, current_user)
        )

        select
            session_user::text, bool_or(rolsuper), bool_or(rolbypassrls), bool_or(owner),
            bool_and(api), bool_or(analyst)
        from roles
    """).one()
    return _Login(*row)


def _refuse_unrestricted(login: _Login) -> None:
    if login.superuser:
        raise UnsafeLogin(
            f'Login "{login.name}" is a superuser, for whom row-level security does not count.',
            hint=_OWN_LOGIN,
        )
    if login.bypasses:
        raise UnsafeLogin(
            f'Login "{login.name}" has BYPASSRLS, so row-level security does not count for it.',
            hint=_OWN_LOGIN,
        )


def _refuse_privileged(login: _Login) -> None:
    if login.owner:
        raise UnsafeLogin(
            f'Login "{login.name}" is a member of {OWNER}, which sees every tenant.',
            hint=_OWN_LOGIN,
        )
    if not login.api:
        raise DatabaseUnsuitable(
            f'Login "{login.name}" is not a member of contextforge_api.',
            hint=f'Run as the administrator: grant contextforge_api to "{login.name}"',
        )
    if login.analyst:
        raise UnsafeLogin(
            f'Login "{login.name}" is a member of contextforge_analyst too, and would add the '
            "tenants granted to it to those of every API key.",
            hint=f'Run as the administrator: revoke contextforge_analyst from "{login.name}"',
        )


def _refuse_unprotected(login: _Login, table: TenantTable) -> None:
    if table.owned_by_login:
        raise UnsafeLogin(
            f'Login "{login.name}" owns {table.name} and could switch its policies off.',
            hint=f"Run as the administrator: alter table {table.name} owner to {OWNER}",
        )
    if not table.forced:
        raise DatabaseUnsuitable(
            f"Row-level security is not enabled and forced on {table.name}.",
            hint=f"Run as the administrator: alter table {table.name} enable row level security, "
            "force row level security",
        )
    if not table.policies:
        raise DatabaseUnsuitable(
            f"{table.name} has no policy, so no tenant can see its rows.",
            hint="Restore it from migration 0004, or from a backup.",
        )
