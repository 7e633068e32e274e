"""Tenants, analyst grants and API keys, on an owner's connection; keys are checked by the API's."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import get_args

from sqlalchemy import Connection

from service.db.engine import OWNER, TENANT_ID
from service.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.types import AnalystGrant, ApiKey, Caller, Scope, Tenant

API = "contextforge_api"
ANALYST = "contextforge_analyst"
SCOPES: tuple[str, ...] = get_args(Scope)

_KEY = re.compile(r"cf_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
_KEY_COLUMNS = (
    "key_id, display_name, tenant_ids, scopes, acl_groups, created_at, expires_at, revoked_at"
)


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new API key; its text is in no other place and cannot be shown again."""

    key: ApiKey
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Admission:
    """Who a valid key speaks for; wait_seconds where it was used too often."""

    caller: Caller
    wait_seconds: float | None


@dataclass(frozen=True, slots=True)
class _Role:
    """What decides whether a database role can be an analyst."""

    unrestricted: bool
    owner: bool
    api: bool
    analyst: bool


def create_tenant(
    connection: Connection, tenant_id: str, *, display_name: str | None = None, lang: str = "en"
) -> bool:
    """Add a tenant; False if it was there."""
    statement = "select public.create_tenant(%s, %s, %s)"
    values = (_clean(tenant_id, "tenant id"), display_name, lang)
    return bool(connection.exec_driver_sql(statement, values).scalar())


def delete_tenant(connection: Connection, tenant_id: str) -> bool:
    """Delete a tenant with everything it has; False if there was none."""
    statement = "select public.delete_tenant(%s)"
    return bool(connection.exec_driver_sql(statement, (_clean(tenant_id, "tenant id"),)).scalar())


def list_tenants(connection: Connection) -> list[Tenant]:
    """Return every tenant by name, with the number of its nodes."""
    rows = connection.exec_driver_sql("""
        select t.tenant_id, t.display_name, t.created_at, coalesce(n.nodes, 0), p.embedder_version
        from contextforge.tenants as t
        left join contextforge.tenant_profiles as p on p.tenant_id = t.tenant_id
        left join (
            select k.tenant_id, count(*) as nodes
            from public.knowledge_nodes as k
            group by k.tenant_id
        ) as n on n.tenant_id = t.tenant_id
        order by t.tenant_id
    """)
    return [Tenant(*row) for row in rows]


def grant_tenant(connection: Connection, role_name: str, tenant_id: str) -> bool:
    """Let a database role read a tenant; False if it could already."""
    role = _find_role(connection, role_name)
    _require_analyst(role_name, role)
    _require_tenants(connection, [tenant_id])
    if not role.analyst:
        _add_analyst(connection, role_name)
    statement = (
        "insert into contextforge.analyst_grants (role_name, tenant_id) values (%s, %s)"
        " on conflict do nothing"
    )
    return connection.exec_driver_sql(statement, (role_name, tenant_id)).rowcount == 1


def revoke_tenant(connection: Connection, role_name: str, tenant_id: str) -> bool:
    """Take a tenant from a database role, which may be gone by now; False if it had no grant."""
    # The role stays an analyst: roles are the whole server's, grants are this database's, and
    # an analyst without grants sees nothing.
    statement = "delete from contextforge.analyst_grants where role_name = %s and tenant_id = %s"
    return connection.exec_driver_sql(statement, (role_name, tenant_id)).rowcount == 1


def list_grants(connection: Connection) -> list[AnalystGrant]:
    """Return every grant to an analyst, by role and tenant."""
    rows = connection.exec_driver_sql("""
        select
            g.role_name::text, g.tenant_id, g.granted_at,
            exists (select from pg_catalog.pg_roles as r where r.rolname = g.role_name)
        from contextforge.analyst_grants as g
        order by g.role_name, g.tenant_id
    """)
    return [AnalystGrant(*row) for row in rows]


def create_key(
    connection: Connection,
    display_name: str,
    *,
    tenant_ids: Sequence[str],
    scopes: Sequence[str],
    acl_groups: Sequence[str] = (),
    expires_at: datetime | None = None,
) -> CreatedKey:
    """Make an API key; only its SHA-256 is stored, so this result is the one place to read it."""
    name = _clean(display_name, "key's name")
    groups = [_clean(group, "group") for group in _distinct(acl_groups)]
    _require_scopes(scopes)
    _require_future(expires_at)
    _require_tenants(connection, tenant_ids)
    key_id = secrets.token_hex(6)
    text = f"cf_{key_id}_{secrets.token_urlsafe(32)}"
    row = connection.exec_driver_sql(
        "insert into contextforge.api_keys"
        " (key_id, key_hash, display_name, tenant_ids, scopes, acl_groups, expires_at)"
        f" values (%s, %s, %s, %s, %s, %s, %s) returning {_KEY_COLUMNS}",
        (
            key_id,
            _hash_key(text),
            name,
            _distinct(tenant_ids),
            _distinct(scopes),
            groups,
            expires_at,
        ),
    ).one()
    return CreatedKey(_read_key(row), text)


def list_keys(connection: Connection) -> list[ApiKey]:
    """Return every API key, the oldest first, without its secret."""
    rows = connection.exec_driver_sql(
        f"select {_KEY_COLUMNS} from contextforge.api_keys order by created_at, key_id"
    )
    return [_read_key(row) for row in rows]


def revoke_key(connection: Connection, key_id: str) -> bool:
    """Make a key useless from now on; again changes nothing, False if there is no such key."""
    statement = (
        "update contextforge.api_keys set revoked_at = coalesce(revoked_at, now())"
        " where key_id = %s"
    )
    return connection.exec_driver_sql(statement, (_clean(key_id, "key id"),)).rowcount == 1


def authenticate_key(connection: Connection, key: str) -> Caller | None:
    """Return who a key speaks for; None if it is unknown, expired or revoked."""
    if not _KEY.fullmatch(key):
        return None
    statement = "select key_id, tenant_ids, scopes, acl_groups from public.authenticate_key(%s)"
    row = connection.exec_driver_sql(statement, (_hash_key(key),)).one_or_none()
    if row is None:
        return None
    key_id, tenant_ids, scopes, acl_groups = row
    return Caller(key_id, tuple(tenant_ids), tuple(scopes), tuple(acl_groups))


def admit_key(
    connection: Connection, key: str, *, per_minute: float, burst: int
) -> Admission | None:
    """Authenticate a key and count its use; None if it is unknown, expired or revoked."""
    if not _KEY.fullmatch(key):
        return None
    statement = (
        "select key_id, tenant_ids, scopes, acl_groups, wait_seconds"
        " from public.admit_key(%s, %s, %s)"
    )
    values = (_hash_key(key), per_minute, burst)
    row = connection.exec_driver_sql(statement, values).one_or_none()
    if row is None:
        return None
    key_id, tenant_ids, scopes, acl_groups, wait_seconds = row
    caller = Caller(key_id, tuple(tenant_ids), tuple(scopes), tuple(acl_groups))
    return Admission(caller, wait_seconds)


def _hash_key(text: str) -> bytes:
    # No salt and no slow hash: the secret is 256 random bits, which nobody can guess or list.
    return hashlib.sha256(text.encode()).digest()


def _read_key(row: Iterable[object]) -> ApiKey:
    return ApiKey(*(tuple(value) if isinstance(value, list) else value for value in row))  # type: ignore[arg-type]


def _distinct(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _clean(text: str, what: str) -> str:
    if not text.strip() or "\x00" in text:
        raise InvalidInput(f"The {what} is empty or has a NUL byte in it.")
    return text


def _require_scopes(scopes: Sequence[str]) -> None:
    hint = f"The scopes are {', '.join(SCOPES)}."
    if not scopes:
        raise InvalidInput("A key needs at least one scope.", hint=hint)
    for scope in scopes:
        if scope not in SCOPES:
            raise InvalidInput(f'"{scope}" is not a scope.', hint=hint)


def _require_future(expires_at: datetime | None) -> None:
    if expires_at is None:
        return
    if expires_at.tzinfo is None:
        raise InvalidInput("The expiry of a key needs a time zone.")
    if expires_at <= datetime.now(UTC):
        raise InvalidInput(f"The key would have expired already, at {expires_at.isoformat()}.")


def _require_tenants(connection: Connection, tenant_ids: Sequence[str]) -> None:
    if not tenant_ids:
        raise InvalidInput("A key needs at least one tenant.")
    wanted = [each for each in tenant_ids if TENANT_ID.fullmatch(each)]
    statement = "select tenant_id from contextforge.tenants where tenant_id = any(%s)"
    known = set(connection.exec_driver_sql(statement, (wanted,)).scalars())
    missing = [each for each in tenant_ids if each not in known]
    if missing:
        raise NotFound(
            f'There is no tenant "{missing[0]}".',
            hint=f"Create it with: contextforge tenants create {missing[0]}",
        )


def _find_role(connection: Connection, role_name: str) -> _Role:
    statement = """
        select
            r.rolsuper or r.rolbypassrls,
            pg_has_role(r.oid, %s, 'member'),
            pg_has_role(r.oid, %s, 'member'),
            pg_has_role(r.oid, %s, 'usage')
        from pg_catalog.pg_roles as r
        where r.rolname = %s
    """
    values = (OWNER, API, ANALYST, _clean(role_name, "role"))
    row = connection.exec_driver_sql(statement, values).one_or_none()
    if row is None:
        raise NotFound(
            f'This server has no role "{role_name}".',
            hint="Create it first, in contextforge psql --admin: "
            f"create role {_quote(connection, role_name)} login password '...'",
        )
    return _Role(*row)


def _require_analyst(role_name: str, role: _Role) -> None:
    hint = "Give analysts a login of their own: create role NAME login password '...'"
    if role.unrestricted:
        raise Conflict(
            f'Role "{role_name}" bypasses row-level security, so a grant would mean nothing.',
            hint=hint,
        )
    if role_name in (OWNER, API, ANALYST) or role.owner or role.api:
        raise Conflict(
            f'Role "{role_name}" belongs to ContextForge itself and cannot be an analyst.',
            hint=hint,
        )


def _add_analyst(connection: Connection, role_name: str) -> None:
    """Make a role a member of the analysts, as the administrator's login and not as the owner."""
    connection.exec_driver_sql("set local role none")
    # A superuser counts as having the admin option.
    may_grant, login = connection.exec_driver_sql(
        "select pg_has_role(%s, 'usage with admin option'), current_user", (ANALYST,)
    ).one()
    if not may_grant:
        raise Forbidden(
            f'Login "{login}" may not make "{role_name}" a member of {ANALYST}.',
            hint=f"Let whoever created the roles run: grant {ANALYST} to "
            f"{_quote(connection, role_name)}",
        )
    # Without inherit the policies for analysts would not count for a role made with noinherit.
    connection.exec_driver_sql(
        f"grant {ANALYST} to {_quote(connection, role_name)} with inherit true"
    )
    connection.exec_driver_sql(f"set local role {OWNER}")


def _quote(connection: Connection, name: str) -> str:
    return str(connection.exec_driver_sql("select quote_ident(%s)", (name,)).scalar())
