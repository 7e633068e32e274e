"""A circuit breaker per address and key: who failed too often is left alone for a while."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from purgatory import SyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from service.errors import LlmUnavailable
from service.llm.failures import is_refusal

FAILURES = 5
REST_SECONDS = 30.0


class Circuits:
    """The circuits of a process; calls that share an address and a key share a circuit."""

    def __init__(self, *, failures: int = FAILURES, rest_seconds: float = REST_SECONDS) -> None:
        self._factory = SyncCircuitBreakerFactory(
            default_threshold=failures,
            default_ttl=rest_seconds,
            exclude=[(LlmUnavailable, is_refusal)],
        )
        self._lock = Lock()

    @contextmanager
    def watch(self, circuit: str | None) -> Iterator[None]:
        """Count what happens inside; raise at once while the circuit is open."""
        if circuit is None:
            yield
            return
        # purgatory's state is shared between threads without a lock of its own.
        with self._lock:
            breaker = self._factory.get_breaker(circuit)
            try:
                breaker.__enter__()
            except OpenedState as exc:
                raise LlmUnavailable(
                    "Claude failed several times in a row and is left alone for now.",
                    hint="Try again in half a minute.",
                ) from exc.with_traceback(None)
        failure: LlmUnavailable | None = None
        try:
            yield
        except LlmUnavailable as exc:
            failure = exc
            raise
        finally:
            with self._lock:
                breaker.__exit__(type(failure) if failure else None, failure, None)


def name_circuit(client: object) -> str | None:
    """Return the circuit of a client; None for a stand-in without an address."""
    address = getattr(client, "base_url", None)
    key = getattr(client, "api_key", None)
    if address is None or not isinstance(key, str):
        return None
    return f"{address} {hashlib.sha256(key.encode()).hexdigest()[:12]}"
