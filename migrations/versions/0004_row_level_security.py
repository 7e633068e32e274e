"""Who may see what: forced row-level security on every tenant table, failing closed.

The policy shapes matter: `= any(<array>)` keeps the index, `in (select ...)` does not, and only
as a sub-select is the array computed once and not for every row (docs/decisions/0003).
The tenant setting counts only for members of contextforge_api: anyone can SET a variable.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

TENANT_TABLES = (
    "contextforge.tenant_profiles",
    "public.knowledge_nodes",
    "public.node_links",
    "public.node_ranks",
    "contextforge.segments",
    "contextforge.postings",
    "contextforge.search_nodes",
    "contextforge.ann_nodes",
)
SEQUENCES = ("contextforge.node_ids", "contextforge.doc_ids", "contextforge.segment_ids")

API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    for table in TENANT_TABLES:
        op.execute(f"""
            alter table {table} enable row level security;
            alter table {table} force row level security;
            create policy owner_all on {table} to contextforge_owner
                using (true) with check (true);
            create policy api_tenants on {table} to contextforge_api
                using ({API_TENANTS}) with check ({API_TENANTS});
            create policy analyst_tenants on {table} for select to contextforge_analyst
                using ({ANALYST_TENANTS});
            grant select, insert, update, delete on {table} to contextforge_api;
            grant select on {table} to contextforge_analyst;
        """)
    # The first write of a tenant registers its embedder; the profile itself is the owner's to make.
    op.execute("revoke insert, delete on contextforge.tenant_profiles from contextforge_api")
    for sequence in SEQUENCES:
        op.execute(f"grant usage on sequence {sequence} to contextforge_api")


def downgrade() -> None:
    for sequence in SEQUENCES:
        op.execute(f"revoke usage on sequence {sequence} from contextforge_api")
    for table in TENANT_TABLES:
        # The grants go with the policies: without them, they would open every row.
        op.execute(f"""
            revoke all on {table} from contextforge_api, contextforge_analyst;
            drop policy analyst_tenants on {table};
            drop policy api_tenants on {table};
            drop policy owner_all on {table};
            alter table {table} no force row level security;
            alter table {table} disable row level security;
        """)
