"""Registry: what this installation is, its tenants, API keys, analyst grants and embedder profiles.

Registry tables are not tenant tables: nobody but the owner has grants on them, and everyone else
goes through functions. A login sees its own analyst grants through the view granted_tenants.
"""

from alembic import context, op

revision = "0001"
down_revision = None

TENANT_NAME = "'^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$'"


def upgrade() -> None:
    embedding_dim = int(context.config.attributes["embedding_dim"])
    op.execute(f"""
        create table contextforge.installation (
            only_row boolean primary key default true check (only_row),
            embedding_dim integer not null check (embedding_dim between 1 and 2000),
            exact_limit integer not null default 20000 check (exact_limit >= 0),
            ann_method text not null default 'hnsw' check (ann_method in ('hnsw', 'ivfflat')),
            ann_search_effort integer not null default 100 check (ann_search_effort > 0),
            prune_from integer not null default 200000 check (prune_from >= 0),
            created_at timestamptz not null default now()
        );
        insert into contextforge.installation (embedding_dim) values ({embedding_dim});

        create table contextforge.tenants (
            tenant_id text primary key check (tenant_id ~ {TENANT_NAME}),
            display_name text,
            created_at timestamptz not null default now()
        );

        create table contextforge.api_keys (
            key_id text primary key,
            key_hash bytea not null unique,
            display_name text not null,
            tenant_ids text[] not null check (cardinality(tenant_ids) > 0),
            scopes text[] not null
                check (cardinality(scopes) > 0 and scopes <@ array['search', 'ingest', 'admin']),
            acl_groups text[] not null default '{{}}',
            created_at timestamptz not null default now(),
            expires_at timestamptz,
            revoked_at timestamptz
        );

        create table contextforge.analyst_grants (
            role_name name not null,
            tenant_id text not null references contextforge.tenants on delete cascade,
            granted_at timestamptz not null default now(),
            primary key (role_name, tenant_id)
        );

        create table contextforge.embedder_profiles (
            embedder_version text primary key,
            dimension integer not null check (dimension between 1 and 2000),
            raw_cosines double precision[] not null default '{{}}',
            calibrated_cosines double precision[] not null default '{{}}',
            fitted_at timestamptz,
            check (cardinality(raw_cosines) = cardinality(calibrated_cosines))
        );
        comment on table contextforge.embedder_profiles is
            'Monotone piecewise-linear map from raw to calibrated cosine; no points = identity.';

        -- current_user inside a view is the caller, so each login finds only its own grants;
        -- a grant to a group role counts for its members.
        create view contextforge.granted_tenants with (security_barrier) as
        select g.tenant_id
        from contextforge.analyst_grants as g
        join pg_catalog.pg_roles as r on r.rolname = g.role_name
        where pg_catalog.pg_has_role(current_user, r.oid, 'usage');
        grant select on contextforge.granted_tenants to contextforge_analyst;
    """)


def downgrade() -> None:
    op.execute("""
        drop view contextforge.granted_tenants;
        drop table contextforge.embedder_profiles, contextforge.analyst_grants,
            contextforge.api_keys, contextforge.tenants, contextforge.installation;
    """)
