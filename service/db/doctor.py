"""Is this installation well? A list of checks, each with what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Engine

from service.db.database import Database, find_service_url
from service.db.engine import OWNER, open_engine, owner_transaction, plain_transaction
from service.db.jobs import WORKER
from service.db.migrate import check_server, current_revision, head_revision, stored_dimension
from service.db.recount import Difference, measure_segments, recount_nodes, recount_statistics
from service.db.registry import ANALYST, API, list_grants
from service.db.startup import check_login, list_tenant_tables
from service.errors import ServiceError
from service.settings import Settings

Status = Literal["ok", "warning", "failed"]

RECOMMENDED_VECTOR = (0, 8, 4)
POLICIES = ("analyst_tenants", "api_tenants", "owner_all")
MANY_SEGMENTS = 100
MANY_POSTINGS = 10_000
LARGE_DEAD_SHARE = 0.3
NEARLY_USED_UP = 0.8

_MIGRATE = "contextforge migrate"
_REBUILD = "Report it with this output; ingesting the tenant into a new one makes it whole again."


@dataclass(frozen=True, slots=True)
class Check:
    """One question about the installation and its answer."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None


_Examination = Callable[[Connection, Settings], Check]
_Transaction = Callable[[Engine], AbstractContextManager[Connection]]


def examine(admin: Database, settings: Settings) -> list[Check]:
    """Run every check on an administrator's database; a broken server is not asked for more."""
    checks = _run(admin.engine, settings, _SERVER_CHECKS, transaction=plain_transaction)
    if not any(check.status == "failed" and check.name in _NEEDED for check in checks):
        checks.append(_check_service_login(admin, settings))
        checks += _run(admin.engine, settings, _DATA_CHECKS, transaction=owner_transaction)
    if admin.server is not None:
        checks.append(Check("embedded server", "ok", f"Its log is {admin.server.log_file}."))
    return checks


def _run(
    engine: Engine,
    settings: Settings,
    examinations: dict[str, _Examination],
    *,
    transaction: _Transaction,
) -> list[Check]:
    checks = []
    for name, examination in examinations.items():
        try:
            with transaction(engine) as connection:
                checks.append(examination(connection, settings))
        except ServiceError as exc:
            checks.append(Check(name, "failed", exc.message, exc.hint))
    return checks


# --- the server ---------------------------------------------------------------------------------


def _check_versions(connection: Connection, _: Settings) -> Check:
    check_server(connection)
    server, vector = connection.exec_driver_sql("""
        select
            current_setting('server_version'),
            (select e.extversion from pg_extension as e where e.extname = 'vector')
    """).one()
    if vector is None:
        detail = f"PostgreSQL {server}, without the extension vector."
        return Check("versions", "failed", detail, _MIGRATE)
    detail = f"PostgreSQL {server}, pgvector {vector}."
    if tuple(int(part) for part in vector.split(".")) < RECOMMENDED_VECTOR:
        wanted = ".".join(map(str, RECOMMENDED_VECTOR))
        remedy = f"Install pgvector {wanted} or later, then run: alter extension vector update"
        detail += f" Before {wanted} a vacuum could damage an HNSW index."
        return Check("versions", "warning", detail, remedy)
    return Check("versions", "ok", detail)


def _check_extension(connection: Connection, _: Settings) -> Check:
    schema = connection.exec_driver_sql("""
        select n.nspname::text
        from pg_extension as e join pg_namespace as n on n.oid = e.extnamespace
        where e.extname = 'vector'
    """).scalar()
    if schema != "public":
        detail = f"pgvector stands in schema {schema}, not in public."
        return Check("extension", "failed", detail, "alter extension vector set schema public")
    return Check("extension", "ok", "pgvector stands in schema public.")


def _check_roles(connection: Connection, _: Settings) -> Check:
    rows = connection.exec_driver_sql(
        "select rolname::text, rolcanlogin, rolsuper or rolbypassrls from pg_roles"
        " where rolname = any(%s) order by rolname",
        ([OWNER, API, ANALYST, WORKER],),
    ).all()
    missing = {OWNER, API, ANALYST, WORKER} - {row[0] for row in rows}
    if missing:
        return Check("roles", "failed", f"Missing: {_join(sorted(missing))}.", _MIGRATE)
    for role, can_login, unrestricted in rows:
        if can_login:
            detail = f"{role} can log in; it must only be a role that others are members of."
            return Check("roles", "failed", detail, f"alter role {role} nologin")
        if unrestricted:
            remedy = f"alter role {role} nosuperuser nobypassrls"
            return Check("roles", "failed", f"{role} bypasses row-level security.", remedy)
    return Check("roles", "ok", "All four roles exist, and nobody logs in as them.")


def _check_public_schema(connection: Connection, _: Settings) -> Check:
    if connection.exec_driver_sql(
        "select has_schema_privilege('public', 'public', 'create')"
    ).scalar():
        detail = "Anyone who can connect may create objects in schema public."
        remedy = "revoke create on schema public from public"
        return Check("schema public", "failed", detail, remedy)
    return Check("schema public", "ok", "PUBLIC may not create objects in it.")


def _check_migrations(connection: Connection, _: Settings) -> Check:
    connection.exec_driver_sql(f"set local role {OWNER}")
    found, head = current_revision(connection), head_revision()
    if found != head:
        detail = f"The database is at {found or 'nothing'}, this version needs {head}."
        return Check("migrations", "failed", detail, _MIGRATE)
    return Check("migrations", "ok", f"At the head, {head}.")


def _check_dimension(connection: Connection, settings: Settings) -> Check:
    stored = stored_dimension(connection)
    if stored != settings.embedding_dim:
        detail = f"EMBEDDING_DIM is {settings.embedding_dim}, the database was made with {stored}."
        return Check("embedding dimension", "failed", detail, f"Set EMBEDDING_DIM={stored}.")
    return Check("embedding dimension", "ok", f"{stored}, as EMBEDDING_DIM says.")


# --- who sees what ------------------------------------------------------------------------------


def _check_service_login(admin: Database, settings: Settings) -> Check:
    name = "service login"
    url = find_service_url(settings, admin.server)
    if url is None:
        detail = "Not checked: DATABASE_URL is not set."
        return Check(name, "warning", detail, "Set DATABASE_URL as the service has it.")
    engine = open_engine(url, pool_size=1)
    try:
        with plain_transaction(engine) as connection:
            check_login(connection)
            login = connection.exec_driver_sql("select session_user").scalar()
            same = _identify(connection) == _identify_admin(admin)
    except ServiceError as exc:
        return Check(name, "failed", exc.message, exc.hint)
    finally:
        engine.dispose()
    if not same:
        detail = "DATABASE_URL and ADMIN_DATABASE_URL name two different databases."
        return Check(name, "failed", detail, "Let both name the same one.")
    return Check(name, "ok", f"{login} sees the tenants of an API key and nothing else.")


def _identify_admin(admin: Database) -> str:
    with plain_transaction(admin.engine) as connection:
        return _identify(connection)


def _identify(connection: Connection) -> str:
    return str(
        connection.exec_driver_sql(
            "select current_database() || ' ' || pg_postmaster_start_time()::timestamptz(6)"
            " at time zone 'UTC'"
        ).scalar()
    )


def _check_row_level_security(connection: Connection, _: Settings) -> Check:
    tables = list_tenant_tables(connection)
    bare = [table.name for table in tables if not table.forced]
    if bare:
        remedy = "alter table NAME enable row level security, force row level security"
        detail = f"Not enabled and forced on {_join(bare)}."
        return Check("row-level security", "failed", detail, remedy)
    foreign = [f"{table.name} ({table.owner})" for table in tables if table.owner != OWNER]
    if foreign:
        remedy = f"alter table NAME owner to {OWNER}"
        return Check("row-level security", "failed", f"Other owners: {_join(foreign)}.", remedy)
    return Check("row-level security", "ok", f"Forced on all {len(tables)} tenant tables.")


def _check_policies(connection: Connection, _: Settings) -> Check:
    tables = list_tenant_tables(connection)
    odd = [
        f"{table.name} ({_join(table.policies) or 'none'})"
        for table in tables
        if table.policies != POLICIES
    ] or _find_odd_policies(connection, [table.name for table in tables])
    if odd:
        detail = f"Not the three policies of every tenant table: {_join(odd)}."
        return Check("policies", "failed", detail, "Restore them from migration 0004.")
    return Check("policies", "ok", f"Each tenant table has {_join(POLICIES)}, all alike.")


def _find_odd_policies(connection: Connection, tables: Sequence[str]) -> list[str]:
    """Return the policies that differ from those of the same name on most other tables."""
    return list(
        connection.exec_driver_sql(
            """
            with shapes as (
                select
                    p.polname, p.polrelid,
                    array[p.polcmd::text, p.polpermissive::text, p.polroles::regrole[]::text,
                        pg_get_expr(p.polqual, p.polrelid),
                        coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '')] as shape
                from pg_policy as p
                where p.polrelid = any(%s::regclass[])
            ),

            usual as (
                select s.polname, mode() within group (order by s.shape) as shape
                from shapes as s
                group by s.polname
            )

            select s.polname || ' on ' || s.polrelid::regclass
            from shapes as s join usual as u on u.polname = s.polname and u.shape <> s.shape
            order by 1
            """,
            (list(tables),),
        ).scalars()
    )


def _check_analysts(connection: Connection, _: Settings) -> Check:
    grants = list_grants(connection)
    gone = sorted({grant.role_name for grant in grants if not grant.role_exists})
    if gone:
        detail = f"A new role of the name would get the grants of these, now gone: {_join(gone)}."
        return Check("analysts", "warning", detail, "contextforge analysts revoke ROLE TENANT")
    return Check("analysts", "ok", f"Grants: {len(grants)}; every role exists.")


# --- the data -----------------------------------------------------------------------------------


def _check_statistics(connection: Connection, _: Settings) -> Check:
    return _judge("statistics", recount_statistics(connection), "Equal to a recount.")


def _check_nodes(connection: Connection, _: Settings) -> Check:
    well = "Every searchable node is in the search tables, and every parent exists."
    return _judge("nodes", recount_nodes(connection), well)


def _judge(name: str, differences: Sequence[Difference], well: str) -> Check:
    if not differences:
        return Check(name, "ok", well)
    shown = [
        f"{each.tenant_id}: {each.what} {each.stored}, recounted {each.recounted}"
        for each in differences
    ]
    return Check(name, "failed", f"{_join(shown, '; ')}.", _REBUILD)


def _check_segments(connection: Connection, _: Settings) -> Check:
    loads = measure_segments(connection)
    heavy = [
        f"{load.tenant_id} ({load.segments} segments, {load.dead_share:.0%} of postings dead)"
        for load in loads
        if load.segments > MANY_SEGMENTS
        or (load.postings > MANY_POSTINGS and load.dead_share > LARGE_DEAD_SHARE)
    ]
    if heavy:
        detail = f"Keyword search reads more than it needs to: {_join(heavy)}."
        return Check("segments", "warning", detail, "contextforge maintain")
    most = max((load.segments for load in loads), default=0)
    return Check("segments", "ok", f"At most {most} a tenant, few postings dead.")


def _check_sequences(connection: Connection, _: Settings) -> Check:
    rows = connection.exec_driver_sql("""
        select s.sequencename::text, coalesce(s.last_value, 0)::float / s.max_value
        from pg_catalog.pg_sequences as s
        where s.schemaname = 'contextforge'
        order by 1
    """).all()
    full = [f"{name} ({used:.0%})" for name, used in rows if used > NEARLY_USED_UP]
    if full:
        detail = f"Nearly used up: {_join(full)}."
        return Check("sequences", "warning", detail, "Move tenants to another database.")
    return Check("sequences", "ok", f"{_join(name for name, _ in rows)} are far from their limits.")


def _join(parts: Iterable[str], separator: str = ", ") -> str:
    listed = list(parts)
    more = f"{separator}and {len(listed) - 10} more" if len(listed) > 10 else ""
    return separator.join(listed[:10]) + more


# Without these nothing else can be asked.
_NEEDED = ("versions", "migrations")
_SERVER_CHECKS: dict[str, _Examination] = {
    "versions": _check_versions,
    "extension": _check_extension,
    "roles": _check_roles,
    "migrations": _check_migrations,
}
_DATA_CHECKS: dict[str, _Examination] = {
    "embedding dimension": _check_dimension,
    "schema public": _check_public_schema,
    "row-level security": _check_row_level_security,
    "policies": _check_policies,
    "analysts": _check_analysts,
    "nodes": _check_nodes,
    "statistics": _check_statistics,
    "segments": _check_segments,
    "sequences": _check_sequences,
}
