"""Around every request: its id, its log line, its figures, its limits, and who waits for it."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio import CapacityLimiter, Event, create_task_group, move_on_after, to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.logs import log_event
from service.api.metrics import Metrics
from service.api.problems import make_internal_problem, make_problem
from service.api.request_ids import HEADER, choose_request_id
from service.db.guard import StatementGuard, guarded
from service.errors import BodyTooLarge, ClientGone, DeadlineExceeded, Overloaded, ServiceError
from service.settings import Settings

API = "/v1/"
UPLOADS = frozenset({"/v1/documents", "/v1/nodes", "/v1/links"})
MEBIBYTE = 1024 * 1024
SMALL_BODY = MEBIBYTE
WAIT_SECONDS = 1.0
UNKNOWN_ROUTE = "unknown"
_LOGGED = ("key_id", "tenant_id", "problem")

logger = logging.getLogger(__name__)
# Apart from the threads of the requests, which may all be busy.
_CANCELLING = CapacityLimiter(8)


@dataclass(slots=True)
class _Sent:
    """What went out so far."""

    status: int = 0
    started: float = field(default_factory=time.perf_counter)


class Observe:
    """Gives a request its id, answers what nobody foresaw, counts and logs it."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = choose_request_id(Headers(scope=scope).get(HEADER))
        scope["state"] = dict(scope.get("state", {}))
        sent = _Sent()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            logger.exception("A request failed in a way nobody foresaw.")
            if not sent.status:
                await make_internal_problem()(scope, receive, send_with_id)
        finally:
            self._note(scope, sent)

    def _note(self, scope: Scope, sent: _Sent) -> None:
        # The path itself could hold what somebody wrote.
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        seconds = time.perf_counter() - sent.started
        status = sent.status or ClientGone.status
        self._metrics.count_request(route, scope["method"], status=status, seconds=seconds)
        state = scope["state"]
        if "problem" in state:
            self._metrics.count_error(state["problem"])
        log_event(
            logger,
            "request",
            method=scope["method"],
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 1),
            **{name: state[name] for name in _LOGGED if name in state},
        )


class Limit:
    """Refuses bodies that are too large, and requests beyond what the process can take on."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._large = settings.contextforge_max_body_mb * MEBIBYTE
        self._places = CapacityLimiter(count_threads(settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        most = self._large if scope["path"] in UPLOADS else SMALL_BODY
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > most:
            await make_problem(_too_large(most))(scope, receive, send)
            return
        place = object()
        with move_on_after(WAIT_SECONDS) as waiting:
            await self._places.acquire_on_behalf_of(place)
        if waiting.cancelled_caught:
            busy = Overloaded("Every thread of this process is busy.")
            await make_problem(busy)(scope, receive, send)
            return
        try:
            await self._app(scope, _count_body(receive, most), send)
        finally:
            self._places.release_on_behalf_of(place)


class Watch:
    """Stops the statements of a request whose caller has gone, or whose time is over."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        limit = self._settings.contextforge_request_seconds
        guard = StatementGuard(
            statement_seconds=self._settings.contextforge_statement_seconds,
            request_seconds=limit,
        )
        caller = _Caller(receive, has_body=_has_body(scope))
        failure: Exception | None = None
        with guarded(guard):
            async with create_task_group() as tasks:
                tasks.start_soon(_stop_when_gone, caller, guard)
                tasks.start_soon(_stop_when_late, limit, guard)
                try:
                    await self._app(scope, caller.receive, send)
                except Exception as exc:  # noqa: BLE001 - raised again, without a group around it
                    failure = exc
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


class _Caller:
    """Who sent a request: hands its body on, and notices when it hangs up."""

    def __init__(self, receive: Receive, *, has_body: bool) -> None:
        self._receive = receive
        self._has_body = has_body
        self._kept: Message | None = None
        self._read = Event()
        self._gone = Event()

    async def receive(self) -> Message:
        """Return the next message; after the body, only that the caller has gone."""
        if self._kept is not None:
            message, self._kept = self._kept, None
            return message
        if not self._read.is_set():
            message = await self._receive()
            if not message.get("more_body", False):
                self._read.set()
            return message
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def wait_until_gone(self) -> None:
        """Return when the caller has hung up."""
        if self._has_body:
            await self._read.wait()
        else:  # the endpoint may never ask for a body that is empty
            self._kept = await self._receive()
            self._read.set()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()


async def _stop_when_gone(caller: _Caller, guard: StatementGuard) -> None:
    await caller.wait_until_gone()
    await _stop(guard, ClientGone("The client has hung up."))


async def _stop_when_late(seconds: float, guard: StatementGuard) -> None:
    await anyio.sleep(seconds)
    await _stop(guard, DeadlineExceeded(f"The request took longer than {seconds:g} s."))


async def _stop(guard: StatementGuard, reason: ServiceError) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(partial(guard.stop, reason), limiter=_CANCELLING)


def _count_body(receive: Receive, most: int) -> Receive:
    """Receive a body of unknown length as long as it is not too large."""
    received = 0

    async def receive_some() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            # Of all errors, FastAPI lets only this one through while it reads a body.
            raise HTTPException(BodyTooLarge.status, _too_large(most).message)
        return message

    return receive_some


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The body is larger than {most // MEBIBYTE} MiB.", hint="Send it in parts."
    )


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def count_threads(settings: Settings) -> int:
    """Return how many requests are in hand at once: most wait for Claude or for a connection."""
    return 4 * settings.contextforge_pool_size
