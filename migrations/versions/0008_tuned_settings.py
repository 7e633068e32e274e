"""What a tenant's settings were before each change, so that it can be undone.

The settings in force stand in contextforge.tenant_profiles; here are those they replaced, the
newest with the highest version.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

TABLE = "contextforge.replaced_settings"
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    op.execute(f"""
        create table {TABLE} (
            tenant_id text not null references contextforge.tenant_profiles on delete cascade,
            version integer not null check (version > 0),
            settings jsonb not null check (jsonb_typeof(settings) = 'object'),
            replaced_at timestamptz not null default now(),
            primary key (tenant_id, version)
        );
        alter table {TABLE} enable row level security;
        alter table {TABLE} force row level security;
        create policy owner_all on {TABLE} to contextforge_owner using (true) with check (true);
        create policy api_tenants on {TABLE} to contextforge_api
            using ({API_TENANTS}) with check ({API_TENANTS});
        create policy analyst_tenants on {TABLE} for select to contextforge_analyst
            using ({ANALYST_TENANTS});
        grant select, insert, update, delete on {TABLE} to contextforge_api;
        grant select on {TABLE} to contextforge_analyst;
    """)


def downgrade() -> None:
    op.execute(f"drop table {TABLE}")
