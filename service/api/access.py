"""Who asks: API keys, their scopes and tenants, and the demo that needs no key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from hmac import compare_digest
from ipaddress import ip_address
from math import ceil
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request, Response, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from service.api.state import Services, find_services
from service.db.engine import plain_transaction
from service.db.registry import admit_key
from service.errors import Forbidden, InvalidInput, RateLimited, Unauthenticated
from service.ingestion.demo import DEMO_TENANT
from service.quality.recording import LONGEST_CALLER, name_caller
from service.types import Caller, Scope

_DEMO = Caller("demo", (DEMO_TENANT,), ("search",), ())
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "via")

_bearer = HTTPBearer(auto_error=False, description="An API key: contextforge keys create")


@dataclass(frozen=True, slots=True)
class Access:
    """The one tenant a request is for, and whose groups it may read.

    label: what X-Caller says of the person behind the key, if anything.
    """

    key_id: str
    tenant_id: str
    acl_groups: tuple[str, ...]
    label: str | None = None

    @property
    def caller(self) -> str:
        """Who asks, as it is kept: a hash of the label, or the key."""
        return self.key_id if self.label is None else name_caller(self.tenant_id, self.label)


class GuardedRoute(APIRoute):
    """A route that admits its caller before a byte of the body is read."""

    needed: ClassVar[Scope]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with the guard before it."""
        handle = super().get_route_handler()

        async def admit_and_handle(request: Request) -> Response:
            request.state.access = await run_in_threadpool(_admit, request, self.needed)
            return await handle(request)

        return admit_and_handle


class SearchRoute(GuardedRoute):
    """A route for keys that may search."""

    needed = "search"


class IngestRoute(GuardedRoute):
    """A route for keys that may write."""

    needed = "ingest"


class AdminRoute(GuardedRoute):
    """A route for keys that may see what is on record."""

    needed = "admin"


def describe_headers(
    _key: Annotated[object, Security(_bearer)],
    _tenant: Annotated[
        str | None,
        Header(alias="X-Tenant", description="One of the key's tenants, if it has several."),
    ] = None,
    _caller: Annotated[
        str | None,
        Header(
            alias="X-Caller",
            description="A label of the person behind the key that stays the same, kept as a short "
            "hash: feedback and experiments count by it. Without it, by the key.",
            min_length=1,
            max_length=LONGEST_CALLER,
        ),
    ] = None,
) -> None:
    """Say in the OpenAPI document what a guarded route reads by itself."""


def find_access(request: Request) -> Access:
    """Return what the guard of the route found out."""
    access = request.state.access
    assert isinstance(access, Access)
    return access


FromAccess = Annotated[Access, Depends(find_access)]


def _admit(request: Request, needed: Scope) -> Access:
    caller = _find_caller(request, find_services(request))
    request.state.key_id = caller.key_id
    tenant_id = choose_tenant(caller, request.headers.get("x-tenant"))
    require_scope(caller, needed)
    request.state.tenant_id = tenant_id
    label = request.headers.get("x-caller")
    return Access(caller.key_id, tenant_id, caller.acl_groups, label)


def _find_caller(request: Request, services: Services) -> Caller:
    if is_demo_visit(request):
        return _DEMO
    return admit_caller(services, read_bearer(request.headers.get("authorization")))


def read_bearer(given: str | None) -> str:
    """Return the key of an Authorization header."""
    scheme, _, key = (given or "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated(
            "This needs an API key.", hint="Send it as: Authorization: Bearer cf_..."
        )
    return key.strip()


def admit_caller(services: Services, key: str) -> Caller:
    """Return who a key speaks for, and count its use; refuse one that is not valid or too busy."""
    settings = services.settings
    with plain_transaction(services.database.engine) as connection:
        admission = admit_key(
            connection,
            key,
            per_minute=settings.contextforge_rate_limit,
            burst=settings.contextforge_rate_burst,
        )
    if admission is None:
        raise Unauthenticated("This API key is unknown, expired or revoked.")
    if admission.wait_seconds is not None:
        error = RateLimited(
            f"This key may make {settings.contextforge_rate_limit} requests a minute.",
            hint=f"Try again in {ceil(admission.wait_seconds) or 1} s.",
        )
        error.retry_after = admission.wait_seconds
        raise error
    return admission.caller


def is_demo_visit(request: Request) -> bool:
    """Whether a request without a key may look at the demo."""
    keyless = "authorization" not in request.headers
    return keyless and find_services(request).demo and _is_local(request)


def require_scope(caller: Caller, needed: Scope) -> None:
    """Refuse a key that is not made for this."""
    if needed not in caller.scopes:
        raise Forbidden(
            f"This key lacks the scope {needed}.", hint="Make another: contextforge keys create"
        )


def choose_tenant(caller: Caller, named: str | None, *, place: str = "X-Tenant") -> str:
    """Return the tenant of a request; whether one exists that is not the key's is never asked."""
    if named is not None:
        if named not in caller.tenant_ids:
            raise Forbidden(
                f"This key does not open the tenant that {place} names.",
                hint=f"Leave {place} out, or name one of the key's tenants.",
            )
        return named
    if len(caller.tenant_ids) > 1:
        raise InvalidInput(
            "This key opens several tenants.",
            hint=f"Name one in {place}: {', '.join(caller.tenant_ids)}.",
        )
    return caller.tenant_ids[0]


def require_metrics_reader(request: Request) -> None:
    """Refuse whoever may not read figures that name tenants."""
    token = find_services(request).settings.contextforge_metrics_token
    if token is None:
        allowed = _is_local(request)
    else:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        same = compare_digest(given.strip().encode(), token.get_secret_value().encode())
        allowed = scheme.lower() == "bearer" and same
    if not allowed:
        raise Forbidden(
            "These figures name tenants, and are not for everybody.",
            hint="Send CONTEXTFORGE_METRICS_TOKEN as a bearer token; where none is set, ask from "
            "the machine of the service.",
        )


def _is_local(request: Request) -> bool:
    """Whether a request comes from this machine and was meant for it.

    A page of another site can make a browser call this machine under a name of its own, but not
    under ours; a proxy on this machine speaks for others.
    """
    if any(name in request.headers for name in _FORWARDED):
        return False
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    return is_loopback(host) and is_loopback(request.client and request.client.host)


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address means this machine and nothing else."""
    if host is None or host.lower() == "localhost":
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
