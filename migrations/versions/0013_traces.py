"""What was shown to whom, what people thought of it, and how often a key was used.

A trace and its feedback are written once: nobody but the owner changes or deletes them, and of the
question they keep the hash alone. A key's bucket says from when on it has its whole burst again;
it is lost in a crash, which costs nobody more than a burst.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

TRACES = "public.traces"
FEEDBACK = "public.feedback"
BUCKETS = "contextforge.key_buckets"
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    op.execute(f"""
        create table {TRACES} (
            tenant_id text not null,
            trace_id uuid not null,
            kind text not null check (kind in ('search', 'context', 'answer')),
            created_at timestamptz not null default clock_timestamp(),
            key_id text not null,
            query_sha256 bytea not null check (length(query_sha256) = 32),
            settings jsonb not null,
            node_ids integer[] not null,
            scores double precision[] not null check (cardinality(scores) = cardinality(node_ids)),
            steps text[] not null,
            milliseconds double precision[] not null
                check (cardinality(milliseconds) = cardinality(steps)),
            primary key (tenant_id, trace_id)
        );
        create index traces_created on {TRACES} (tenant_id, created_at);
        create table {FEEDBACK} (
            tenant_id text not null,
            feedback_id uuid not null,
            trace_id uuid not null,
            created_at timestamptz not null default clock_timestamp(),
            key_id text not null,
            verdict text not null check (verdict in ('helpful', 'unhelpful')),
            node_id integer,
            note text,
            primary key (tenant_id, feedback_id),
            foreign key (tenant_id, trace_id)
                references {TRACES} (tenant_id, trace_id) on delete cascade
        );
        create index feedback_trace on {FEEDBACK} (tenant_id, trace_id);
        create unlogged table {BUCKETS} (
            key_id text primary key
                references contextforge.api_keys (key_id) on delete cascade,
            full_at timestamptz not null
        );
    """)
    for table in (TRACES, FEEDBACK):
        op.execute(f"""
            alter table {table} enable row level security;
            alter table {table} force row level security;
            create policy owner_all on {table} to contextforge_owner using (true) with check (true);
            create policy api_tenants on {table} to contextforge_api
                using ({API_TENANTS}) with check ({API_TENANTS});
            create policy analyst_tenants on {table} for select to contextforge_analyst
                using ({ANALYST_TENANTS});
            grant select, insert on {table} to contextforge_api;
            grant select on {table} to contextforge_analyst;
        """)


def downgrade() -> None:
    op.execute(f"drop table {BUCKETS}; drop table {FEEDBACK}; drop table {TRACES}")
