"""How the MCP server is reached: over stdin and stdout with one key, or over HTTP with each own."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.access import Access, admit_caller, choose_tenant, read_bearer, require_scope
from service.api.problems import make_problem
from service.api.state import Services
from service.db.engine import plain_transaction
from service.db.registry import authenticate_key
from service.errors import ServiceError, Unauthenticated
from service.mcp.server import RequestContext, create_server

PATH = "/mcp"


def serve_stdio(services: Services, key: SecretStr, *, tenant: str | None) -> None:
    """Serve one host over stdin and stdout until it hangs up; every call is made by one key."""

    def admit(_: RequestContext | None = None) -> Access:
        return _admit(services, key.get_secret_value(), tenant=tenant, place="--tenant")

    admit()  # a key that opens nothing is refused now, not at the first call

    async def serve() -> None:
        server = create_server(services, admit)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


def create_http_app(services: Services, *, host: str = "127.0.0.1") -> Starlette:
    """Build the application that serves hosts at /mcp; every request brings its key.

    There are no sessions: what one key began, no other can go on with.
    """

    def admit(context: RequestContext) -> Access:
        headers = context.request.headers if context.request is not None else Headers()
        key = read_bearer(headers.get("authorization"))
        return _admit(services, key, tenant=headers.get("x-tenant"), place="X-Tenant")

    app = create_server(services, admit).streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, host=host
    )
    app.user_middleware.append(Middleware(_KeyGate, services=services))
    return app


def _admit(services: Services, key: str, *, tenant: str | None, place: str) -> Access:
    caller = admit_caller(services, key)
    tenant_id = choose_tenant(caller, tenant, place=place)
    require_scope(caller, "search")
    return Access(caller.key_id, tenant_id, caller.acl_groups)


class _KeyGate:
    """Turns away a request without a valid key before a byte of its body is read."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await run_in_threadpool(self._check, Headers(scope=scope).get("authorization"))
        except ServiceError as exc:
            await make_problem(exc)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, given: str | None) -> None:
        key = read_bearer(given)
        with plain_transaction(self._services.database.engine) as connection:
            if authenticate_key(connection, key) is None:
                raise Unauthenticated("This API key is unknown, expired or revoked.")
