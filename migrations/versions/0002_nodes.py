"""The graph: nodes, links between them, their ranks, and each tenant's profile."""

from alembic import context, op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    embedding_dim = int(context.config.attributes["embedding_dim"])
    op.execute(f"""
        create sequence contextforge.node_ids as integer;

        create table contextforge.tenant_profiles (
            tenant_id text primary key,
            lang text not null default 'en',
            text_config regconfig not null default 'pg_catalog.english',
            embedder_version text,
            embedding_dim integer check (embedding_dim between 1 and {embedding_dim}),
            settings jsonb not null default '{{}}' check (jsonb_typeof(settings) = 'object')
        );

        create table public.knowledge_nodes (
            tenant_id text not null
                check (tenant_id ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{{0,62}}$'),
            node_id integer not null default nextval('contextforge.node_ids'),
            external_id text not null check (external_id <> ''),
            dataset_name text not null default 'default' check (dataset_name <> ''),
            node_type text not null check (node_type <> ''),
            title text not null default '',
            summary text not null default '',
            content text not null default '',
            metadata jsonb not null default '{{}}' check (jsonb_typeof(metadata) = 'object'),
            parent_id integer,
            section_path text,
            order_index integer,
            header text,
            doc_title text,
            url text,
            lang text,
            space_id text,
            acl text[] not null default '{{}}',
            token_count integer check (token_count >= 0),
            content_hash bytea not null,
            embedder_version text,
            searchable_text tsvector,
            embedding vector({embedding_dim}),
            created_at timestamptz not null default now(),
            updated_at timestamptz not null default now(),
            primary key (tenant_id, node_id),
            unique (tenant_id, dataset_name, external_id),
            foreign key (tenant_id, parent_id)
                references public.knowledge_nodes (tenant_id, node_id)
        );
        create index idx_knowledge_nodes_searchable
            on public.knowledge_nodes using gin (searchable_text);
        create index idx_knowledge_nodes_tenant
            on public.knowledge_nodes (tenant_id, parent_id, order_index);
        create index idx_knowledge_nodes_type
            on public.knowledge_nodes (tenant_id, node_type, node_id);
        create index idx_knowledge_nodes_dataset
            on public.knowledge_nodes (tenant_id, dataset_name, node_id);

        create table public.node_links (
            tenant_id text not null,
            source_id integer not null,
            target_id integer not null,
            link_type text not null default 'link' check (link_type <> ''),
            weight double precision not null default 1
                check (weight > 0 and weight < 'infinity'),
            created_at timestamptz not null default now(),
            primary key (tenant_id, source_id, target_id, link_type),
            foreign key (tenant_id, source_id)
                references public.knowledge_nodes (tenant_id, node_id) on delete cascade,
            foreign key (tenant_id, target_id)
                references public.knowledge_nodes (tenant_id, node_id) on delete cascade
        );
        create index idx_node_links_target on public.node_links (tenant_id, target_id);

        create table public.node_ranks (
            tenant_id text not null,
            node_id integer not null,
            rank double precision not null check (rank >= 0),
            computed_at timestamptz not null default now(),
            primary key (tenant_id, node_id),
            foreign key (tenant_id, node_id)
                references public.knowledge_nodes (tenant_id, node_id) on delete cascade
        );
    """)


def downgrade() -> None:
    op.execute("""
        drop table public.node_ranks, public.node_links, public.knowledge_nodes,
            contextforge.tenant_profiles;
        drop sequence contextforge.node_ids;
    """)
