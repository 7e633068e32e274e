"""Whether something may leave the machine, and the record of what does: database and Claude meet.

A call is recorded before it is made, in a transaction of its own: without the record there is no
call. Completing the record may fail; then it stays open, which says that a call was made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Engine

from service.db.egress import finish_egress_call, read_egress_policies, start_egress_call
from service.db.engine import tenant_transaction
from service.errors import LlmUnavailable, ServiceError
from service.llm.calls import Finish, Reply, Request
from service.types import EgressConsent, EgressPurpose

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EgressRecorder:
    """Records calls made for these tenants and one purpose; is called with each request."""

    engine: Engine
    tenant_ids: tuple[str, ...]
    purpose: EgressPurpose
    consent: EgressConsent = "policy"

    def __call__(self, request: Request) -> Finish:
        """Record a call that is about to be made; Forbidden where a policy does not allow it."""
        with self._writing() as connection:
            call_id = start_egress_call(
                connection,
                self.tenant_ids,
                purpose=self.purpose,
                model=request.model,
                text_sha256=request.text_hash(),
                consent=self.consent,
            )
        return lambda result: self._finish(call_id, result)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with tenant_transaction(self.engine, self.tenant_ids) as connection:
            # Whoever only reads nodes has its calls recorded all the same.
            connection.exec_driver_sql("set transaction read write")
            yield connection

    def _finish(self, call_id: UUID, result: Reply | LlmUnavailable) -> None:
        reply = result if isinstance(result, Reply) else None
        try:
            with self._writing() as connection:
                finish_egress_call(
                    connection,
                    self.tenant_ids,
                    call_id=call_id,
                    outcome="failed" if reply is None else "answered",
                    attempts=result.calls,
                    input_tokens=None if reply is None else reply.input_tokens,
                    output_tokens=None if reply is None else reply.output_tokens,
                )
        except ServiceError as exc:
            _log.error("The record of call %s stays open: %s", call_id, exc)


def find_refusal(
    engine: Engine, tenant_ids: Sequence[str], *, purpose: EgressPurpose
) -> str | None:
    """Return why nothing may be sent for these tenants, or None where it may."""
    with tenant_transaction(engine, tenant_ids) as connection:
        policies = read_egress_policies(connection, tenant_ids)
    refusing = next((each for each in policies if not each.allows(purpose)), None)
    if refusing is None:
        return None
    return f'The egress policy of tenant "{refusing.tenant_id}" is {refusing.policy}.'
