"""What may leave the machine for a tenant, and a record of what did.

The policy is the owner's to set. A call is recorded before it is made and completed after: one
without an outcome was made, and how it ended is not known. Nobody but the owner deletes a record,
and of what was sent it keeps the hash alone.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

POLICIES = "contextforge.egress_policies"
CALLS = "public.egress_calls"
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    op.execute(f"""
        create table {POLICIES} (
            tenant_id text not null primary key,
            policy text not null check (policy in ('off', 'expansion', 'synthesis', 'all')),
            changed_at timestamptz not null default now()
        );
        create table {CALLS} (
            tenant_id text not null,
            call_id uuid not null,
            purpose text not null check (purpose in ('expansion', 'synthesis')),
            consent text not null check (consent in ('policy', 'key')),
            model text not null,
            text_sha256 bytea not null check (length(text_sha256) = 32),
            started_at timestamptz not null default clock_timestamp(),
            finished_at timestamptz,
            outcome text check (outcome in ('answered', 'failed')),
            attempts integer,
            input_tokens integer,
            output_tokens integer,
            primary key (tenant_id, call_id),
            check ((finished_at is null) = (outcome is null))
        );
        create index egress_calls_started on {CALLS} (tenant_id, started_at);
    """)
    for table in (POLICIES, CALLS):
        op.execute(f"""
            alter table {table} enable row level security;
            alter table {table} force row level security;
            create policy owner_all on {table} to contextforge_owner using (true) with check (true);
            create policy api_tenants on {table} to contextforge_api
                using ({API_TENANTS}) with check ({API_TENANTS});
            create policy analyst_tenants on {table} for select to contextforge_analyst
                using ({ANALYST_TENANTS});
            grant select on {table} to contextforge_api, contextforge_analyst;
        """)
    op.execute(f"""
        grant insert on {CALLS} to contextforge_api;
        grant update (finished_at, outcome, attempts, input_tokens, output_tokens)
            on {CALLS} to contextforge_api;
    """)


def downgrade() -> None:
    op.execute(f"drop table {CALLS}; drop table {POLICIES}")
