"""What documents refer to: kept as stated, so that a link can be made when its target arrives."""

from alembic import op

revision = "0005"
down_revision = "0004"

TABLE = "contextforge.node_references"
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    op.execute(f"""
        create table {TABLE} (
            tenant_id text not null,
            source_id integer not null,
            kind text not null check (kind in ('path', 'url', 'title')),
            target text not null,
            primary key (tenant_id, source_id, kind, target),
            foreign key (tenant_id, source_id)
                references public.knowledge_nodes (tenant_id, node_id) on delete cascade
        );
        create index idx_knowledge_nodes_title
            on public.knowledge_nodes (tenant_id, lower(title)) where parent_id is null;
        create index idx_knowledge_nodes_url
            on public.knowledge_nodes (tenant_id, url) where url is not null;
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
    op.execute(f"""
        drop table {TABLE};
        drop index public.idx_knowledge_nodes_title, public.idx_knowledge_nodes_url;
    """)
