"""Feedback as it can be learnt from: who said what of which document, for which question."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from service.types import Signal

# Far more than counts of one caller, and few enough that a flood does not fill the memory.
MOST_OF_A_CALLER = 500


@dataclass(frozen=True, slots=True)
class GivenSignal:
    """One caller's signal about a document shown at a position; a section has its article's name.

    question_id: the same for the same words asked of the same dataset.
    """

    question_id: str
    question: str
    dataset_name: str | None
    caller: str
    document: str
    signal: Signal
    position: int


def read_signals(
    connection: Connection, tenant_id: str, *, within: timedelta, most: int = MOST_OF_A_CALLER
) -> list[GivenSignal]:
    """Return the signals of a tenant's callers, newest first, where the question's words are kept.

    An accepted answer counts for the nodes that its caller reported as cited.
    """
    rows = connection.exec_driver_sql(
        """
        select s.question_id, s.question, s.dataset_name, s.caller, s.document, s.signal, s.position
        from (
            select
                concat_ws('/', encode(q.query_sha256, 'hex'), t.settings ->> 'dataset_name')
                    as question_id,
                q.question,
                t.settings ->> 'dataset_name' as dataset_name,
                f.caller,
                case when n.node_type = 'section' then a.external_id else n.external_id end
                    as document,
                f.signal,
                coalesce(f.position, c.position, array_position(t.node_ids, n.node_id)) as position,
                f.created_at,
                f.feedback_id,
                row_number() over (
                    partition by f.caller order by f.created_at desc, f.feedback_id, n.node_id
                ) as place
            from public.feedback as f
            join public.traces as t on t.tenant_id = f.tenant_id and t.trace_id = f.trace_id
            join public.asked_questions as q
                on q.tenant_id = t.tenant_id and q.query_sha256 = t.query_sha256
            left join public.feedback as c
                on c.tenant_id = f.tenant_id and c.trace_id = f.trace_id and c.caller = f.caller
                and c.signal = 'cited' and f.signal = 'answer_accepted' and f.node_id is null
            join public.knowledge_nodes as n
                on n.tenant_id = f.tenant_id and n.node_id = coalesce(f.node_id, c.node_id)
            left join public.knowledge_nodes as a
                on a.tenant_id = n.tenant_id and a.node_id = n.parent_id
            where f.tenant_id = %s and f.created_at > clock_timestamp() - %s::interval
        ) as s
        where s.place <= %s and s.position is not null and s.document is not null
        order by s.created_at desc, s.feedback_id, s.document
        """,
        (tenant_id, within, most),
    )
    return [GivenSignal(*row) for row in rows]
