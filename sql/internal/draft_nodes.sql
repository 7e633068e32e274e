create or replace function contextforge.draft_nodes(
    tenant_id text, dataset_name text, nodes jsonb, embeddings vector[], embedder_version text
)
returns contextforge.node_draft[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    padded_dim constant integer := contextforge.embedding_dim();
    drafts contextforge.node_draft[];
begin
    select array_agg(drafted.draft) into drafts
    from (
        select
            x.external_id,
            row(
                x.item, x.parent, coalesce(x.searchable, true),
                row(
                    draft_nodes.tenant_id, null, x.external_id, draft_nodes.dataset_name,
                    x.node_type, coalesce(x.title, ''), coalesce(x.summary, ''),
                    coalesce(x.content, ''), coalesce(nullif(x.metadata, 'null'), '{}'),
                    x.parent_id, x.section_path, x.order_index, x.header, x.doc_title, x.url,
                    x.lang, x.space_id, coalesce(x.acl, '{}'), x.token_count,
                    contextforge.content_hash(
                        x.title, x.summary, x.header, x.content, x.lang, x.searchable
                    ),
                    case when x.embedding is not null then draft_nodes.embedder_version end,
                    null, contextforge.pad_embedding(x.embedding, padded_dim), now(), now()
                )::public.knowledge_nodes
            )::contextforge.node_draft as draft
        from rows from (
            jsonb_to_recordset(nodes) as (
                external_id text, node_type text, title text, summary text, content text,
                metadata jsonb, parent text, parent_id integer, section_path text,
                order_index integer, header text, doc_title text, url text, lang text,
                space_id text, acl text[], token_count integer, searchable boolean
            ),
            unnest(embeddings)
        ) with ordinality as x (
            external_id, node_type, title, summary, content, metadata, parent, parent_id,
            section_path, order_index, header, doc_title, url, lang, space_id, acl, token_count,
            searchable, embedding, item
        )
    ) as drafted;
    return drafts;
end
$$;

comment on function contextforge.draft_nodes(text, text, jsonb, vector[], text) is
'A checked batch as rows, embeddings padded, ids still open.';

revoke all on function contextforge.draft_nodes(text, text, jsonb, vector[], text) from public;
grant execute on function contextforge.draft_nodes(text, text, jsonb, vector[], text)
to contextforge_api;
