"""Who touches which rows: every actor tries every operation on every tenant table.

One observation is a dictionary from (actor, table, tenant, operation) to the number of rows
touched, or to the SQLSTATE of the refusal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psycopg
from psycopg import sql

TENANTS = ("acme", "globex")
# A tenant has one profile: the one to insert belongs to a second tenant of the same actor.
SECOND = {"acme": "acme-2", "globex": "globex-2"}
OPERATIONS = ("read", "insert", "update", "delete")
# To hand all one sees to a tenant one may not see. Without WHERE: with it, PostgreSQL would hold
# the new row against the USING clause too, and a weak WITH CHECK would go unnoticed.
MOVE = "move"
TENANT_TABLES = (
    "contextforge.ann_nodes",
    "contextforge.egress_policies",
    "contextforge.link_marks",
    "contextforge.next_embeddings",
    "contextforge.node_references",
    "contextforge.postings",
    "contextforge.rank_states",
    "contextforge.replaced_settings",
    "contextforge.search_nodes",
    "contextforge.segments",
    "contextforge.tenant_profiles",
    "public.asked_questions",
    "public.egress_calls",
    "public.experiments",
    "public.feedback",
    "public.knowledge_nodes",
    "public.node_links",
    "public.node_ranks",
    "public.recall_audits",
    "public.size_marks",
    "public.traces",
)
# Profiles are the owner's to make and to remove, egress policies its own; what a record says was
# sent, shown or thought stays as it was written.
OWNERS_ALONE = {
    "contextforge.tenant_profiles": ("insert", "delete"),
    "contextforge.egress_policies": ("insert", "update", "delete", MOVE),
    "public.asked_questions": ("delete",),
    "public.egress_calls": ("update", "delete", MOVE),
    "public.experiments": ("insert", "delete"),
    "public.feedback": ("update", "delete", MOVE),
    "public.recall_audits": ("update", "delete", MOVE),
    "public.size_marks": ("insert", "update", "delete", MOVE),
    "public.traces": ("update", "delete", MOVE),
}
DENIED = "42501"

Cell = tuple[str, str, str, str]
Observation = dict[Cell, int | str]


@dataclass(frozen=True, slots=True)
class Actor:
    """A role and the tenants it claims: None never said any, '' is what COMMIT leaves behind."""

    name: str
    role: str
    setting: str | None = None
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    has_grants: bool = True

    @property
    def operations(self) -> tuple[str, ...]:
        return OPERATIONS if self.name == "owner" else (*OPERATIONS, MOVE)

    def may_write(self, table: str, operation: str) -> bool:
        """Whether the grants allow it at all."""
        is_owners = operation in OWNERS_ALONE.get(table, ())
        return self.name == "owner" or (self.name.startswith("api") and not is_owners)


def expect_outcome(actor: Actor, table: str, tenant: str, operation: str, rows: int) -> int | str:
    """What must happen, from who the actor is; rows is how many the tenant has in the table."""
    allowed = tenant in (actor.reads if operation == "read" else actor.writes)
    if not actor.has_grants or (operation != "read" and not actor.may_write(table, operation)):
        return DENIED
    if operation == MOVE:
        return DENIED if actor.writes else 0
    if operation == "insert":
        return 1 if allowed else DENIED
    return rows if allowed else 0


def expect_matrix(
    actors: Iterable[Actor], rows: dict[tuple[str, str], int], tables: Iterable[str]
) -> Observation:
    """The whole matrix as it must be."""
    return {
        (actor.name, table, tenant, operation): expect_outcome(
            actor, table, tenant, operation, rows[table, tenant]
        )
        for actor in actors
        for table in tables
        for tenant in TENANTS
        for operation in actor.operations
    }


def observe_actor(
    connection: psycopg.Connection,
    actor: Actor,
    samples: dict[tuple[str, str], str],
    *,
    tables: Iterable[str],
    become: bool,
) -> Observation:
    """Let one actor try everything; nothing it does stays."""
    found: Observation = {}
    for table in tables:
        for tenant in TENANTS:
            for operation in actor.operations:
                statement, values = build_statement(table, tenant, operation, samples)
                with disguised(connection, actor, become=become):
                    outcome = attempt(connection, statement, values)
                found[actor.name, table, tenant, operation] = outcome
    return found


@contextmanager
def disguised(connection: psycopg.Connection, actor: Actor, *, become: bool) -> Iterator[None]:
    """Be the actor inside a transaction that is rolled back; become = by SET ROLE."""
    with connection.transaction(force_rollback=True):
        if become:
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(actor.role)))
        if actor.setting is not None and (actor.setting or become):
            connection.execute(
                sql.SQL("set local app.tenant_ids = {}").format(sql.Literal(actor.setting))
            )
        yield


def attempt(connection: psycopg.Connection, statement: str, values: tuple[str, ...]) -> int | str:
    """The number of rows a statement touches, or the SQLSTATE it fails with."""
    try:
        with connection.transaction():
            return connection.execute(statement, values).rowcount
    except psycopg.Error as exc:
        return exc.sqlstate or str(exc)


def build_statement(
    table: str, tenant: str, operation: str, samples: dict[tuple[str, str], str]
) -> tuple[str, tuple[str, ...]]:
    match operation:
        case "read":
            return f"select 1 from {table} where tenant_id = %s", (tenant,)
        case "insert":
            row = f"(jsonb_populate_record(null::{table}, %s)).*"
            return f"insert into {table} select {row}", (samples[table, tenant],)
        case "update":
            return f"update {table} set tenant_id = tenant_id where tenant_id = %s", (tenant,)
        case "delete":
            return f"delete from {table} where tenant_id = %s", (tenant,)
        case _:
            return f"update {table} set tenant_id = 'nowhere'", ()


def sample_rows(connection: psycopg.Connection) -> dict[tuple[str, str], str]:
    """For each table and tenant, a row like one that is there, under a key that is free."""
    samples: dict[tuple[str, str], str] = {}
    for table in TENANT_TABLES:
        for tenant in TENANTS:
            row = connection.execute(
                f"select to_jsonb(t) from {table} as t where t.tenant_id = %s limit 1", (tenant,)
            ).fetchone()
            assert row is not None, f"{tenant} has no rows in {table} to compare with"
            samples[table, tenant] = json.dumps({**row[0], **_free_key(connection, table, tenant)})
    return samples


def count_rows(connection: psycopg.Connection) -> dict[tuple[str, str], int]:
    return {
        (table, tenant): connection.execute(
            f"select 1 from {table} where tenant_id = %s", (tenant,)
        ).rowcount
        for table in TENANT_TABLES
        for tenant in TENANTS
    }


# What makes a copied row another one.
_FREE_KEYS: dict[str, dict[str, object]] = {
    "contextforge.link_marks": {"mark_id": 1_000_000},
    "contextforge.node_references": {"target": "another"},
    "contextforge.postings": {"segment_id": 1_000_000},
    "contextforge.replaced_settings": {"version": 1_000_000},
    "contextforge.segments": {"segment_id": 1_000_000},
    "public.asked_questions": {"query_sha256": "\\x" + "00" * 32},
    "public.egress_calls": {"call_id": str(uuid4())},
    "public.experiments": {"experiment_id": str(uuid4()), "ended_at": "now", "outcome": "stopped"},
    "public.feedback": {"feedback_id": str(uuid4()), "caller": "another"},
    "public.recall_audits": {"audit_id": str(uuid4())},
    "public.size_marks": {"marked_on": "2000-01-01"},
    "public.traces": {"trace_id": str(uuid4())},
    "public.node_links": {"link_type": "another"},
}


def _free_key(connection: psycopg.Connection, table: str, tenant: str) -> dict[str, object]:
    match table:
        case (
            "contextforge.egress_policies"
            | "contextforge.rank_states"
            | "contextforge.tenant_profiles"
        ):
            return {"tenant_id": SECOND[tenant]}
        case "public.node_ranks" | "contextforge.next_embeddings":
            missing = connection.execute(
                "select node_id from public.knowledge_nodes where tenant_id = %s"
                f" except select node_id from {table} where tenant_id = %s",
                (tenant, tenant),
            ).fetchone()
            assert missing is not None
            return {"node_id": missing[0]}
        case _:
            return _FREE_KEYS.get(table, {"node_id": 1_000_000, "external_id": "another"})
