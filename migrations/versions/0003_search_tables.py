"""Private search tables: posting lists by segment, and the narrow table both legs read.

- postings.packed holds one bigint a posting: doc_id << 30 | tf << 20 | length. A tsvector
  holds at most 256 positions a lexeme and 1 MB in all, so both fit. One array unnests 2.4 times
  faster than three (docs/decisions/0002).
- postings.documents is the row's net contribution to the document frequency: added minus removed.
- segments sum up to the tenant's N and total length in the same way, so writers only ever append.
- search_nodes has one row a live searchable node; its vector is unpadded and inline, its acl null
  where anyone may see it: a test for null is what each scanned row can afford.
- search_filter is what a search keeps, with documents and metadata already resolved to ids.
- Only primary keys and a partial index lead with tenant_id: another index that did would tempt the
  planner into reading a whole tenant where its statistics are missing or old (docs/decisions/0004).
- node_draft is a node on its way in: its place in the batch, and its parent's external_id.
- ann_nodes repeats the vectors of tenants too large for an exact scan, under the ANN index.
"""

from alembic import context, op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    embedding_dim = int(context.config.attributes["embedding_dim"])
    op.execute(f"""
        create sequence contextforge.doc_ids as integer;
        create sequence contextforge.segment_ids as bigint;

        create table contextforge.segments (
            tenant_id text not null,
            segment_id bigint not null,
            documents integer not null,
            total_length bigint not null,
            postings bigint not null,
            live_postings bigint not null,
            text_configs regconfig[] not null default '{{}}',
            created_at timestamptz not null default clock_timestamp(),
            primary key (tenant_id, segment_id)
        );

        create table contextforge.postings (
            tenant_id text not null,
            lexeme text collate "C" not null,
            segment_id bigint not null,
            documents integer not null,
            packed bigint[] not null,
            primary key (tenant_id, lexeme, segment_id)
        );
        alter table contextforge.postings alter column packed set storage external;
        create index idx_postings_segment on contextforge.postings (segment_id);

        create table contextforge.search_nodes (
            tenant_id text not null,
            node_id integer not null,
            doc_id integer not null,
            article_id integer not null,
            text_length integer not null,
            in_ann boolean not null default false,
            node_type text not null,
            dataset_name text not null,
            lang text,
            space_id text,
            acl text[],
            embedding halfvec,
            primary key (tenant_id, node_id)
        );
        alter table contextforge.search_nodes alter column embedding set storage plain;
        create index idx_search_nodes_doc on contextforge.search_nodes (doc_id);
        create index idx_search_nodes_dataset
            on contextforge.search_nodes (dataset_name, tenant_id);
        create index idx_search_nodes_ann_tail
            on contextforge.search_nodes (tenant_id, node_id)
            where not in_ann and embedding is not null;

        create table contextforge.ann_nodes (
            tenant_id text not null,
            node_id integer not null,
            article_id integer not null,
            node_type text not null,
            dataset_name text not null,
            lang text,
            space_id text,
            acl text[],
            embedding halfvec({embedding_dim}) not null,
            primary key (tenant_id, node_id)
        );
        alter table contextforge.ann_nodes alter column embedding set storage plain;
        create index idx_knowledge_nodes_embedding
            on contextforge.ann_nodes using hnsw (embedding halfvec_cosine_ops);

        create type contextforge.node_draft as (
            item integer,
            parent text,
            searchable boolean,
            node public.knowledge_nodes
        );
        create type contextforge.search_filter as (
            node_types text[],
            dataset_name text,
            lang text,
            space_id text,
            article_ids integer[],
            node_ids integer[],
            acl_groups text[]
        );
    """)


def downgrade() -> None:
    op.execute("""
        drop type contextforge.search_filter, contextforge.node_draft;
        drop table contextforge.ann_nodes, contextforge.search_nodes, contextforge.postings,
            contextforge.segments;
        drop sequence contextforge.segment_ids, contextforge.doc_ids;
    """)
