"""Embeddings of a tenant's next model, beside those it is searched by until the switch.

They are unpadded: their length is the dimension the tenant has after the switch. content_hash is
that of the text that was embedded; where the node has another by now, the row counts for nothing.
"""

from alembic import context, op

revision = "0006"
down_revision = "0005"

TABLE = "contextforge.next_embeddings"
API_TENANTS = """tenant_id = any((
    select string_to_array(nullif(current_setting('app.tenant_ids', true), ''), ',')
)::text[])"""
ANALYST_TENANTS = "tenant_id = any(array(select g.tenant_id from contextforge.granted_tenants g))"


def upgrade() -> None:
    embedding_dim = int(context.config.attributes["embedding_dim"])
    op.execute(f"""
        create table {TABLE} (
            tenant_id text not null,
            node_id integer not null,
            embedder_version text not null check (embedder_version <> ''),
            content_hash bytea not null,
            embedding vector not null check (vector_dims(embedding) <= {embedding_dim}),
            primary key (tenant_id, node_id),
            foreign key (tenant_id, node_id)
                references public.knowledge_nodes (tenant_id, node_id) on delete cascade
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
