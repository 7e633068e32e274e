create or replace function contextforge.index_nodes(
    before public.knowledge_nodes[],
    after public.knowledge_nodes[],
    default_config regconfig
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    tenant constant text := after[1].tenant_id;
    node_ids constant integer[] := array(select a.node_id from unnest(after) as a);
    dim integer;
    default_lang text;
    added_docs integer[];
    added_texts tsvector[];
    added_lengths integer[];
    removed_texts tsvector[];
    removed_lengths integer[];
begin
    select coalesce(p.embedding_dim, contextforge.embedding_dim()), p.lang
    into dim, default_lang
    from contextforge.tenant_profiles as p
    where p.tenant_id = tenant;

    select
        coalesce(array_agg(b.searchable_text order by b.node_id), '{}'),
        coalesce(array_agg(s.text_length order by b.node_id), '{}')
    into removed_texts, removed_lengths
    from unnest(before) as b
    join unnest(after) as a on a.node_id = b.node_id
    join (
        select s.node_id, s.text_length
        from contextforge.search_nodes as s
        where s.tenant_id = tenant and s.node_id = any(node_ids)
    ) as s on s.node_id = b.node_id
    where a.content_hash <> b.content_hash;

    delete from contextforge.search_nodes as s
    where s.tenant_id = tenant
        and s.node_id = any(
            array(select a.node_id from unnest(after) as a where a.searchable_text is null)
        );

    -- Each version of a text has a doc id of its own; the same text keeps the one it has.
    with written as (
        insert into contextforge.search_nodes as s (
            tenant_id, node_id, doc_id, article_id, text_length, node_type, dataset_name, lang,
            space_id, acl, embedding
        )
        select
            tenant, a.node_id,
            case
                when a.content_hash = b.content_hash then kept.doc_id
                else nextval('contextforge.doc_ids')::integer
            end,
            coalesce(a.parent_id, a.node_id), contextforge.text_length(a.searchable_text),
            a.node_type, a.dataset_name, coalesce(a.lang, default_lang), a.space_id,
            nullif(a.acl, '{}'),
            l2_normalize(subvector(a.embedding, 1, dim))::halfvec
        from unnest(after) as a
        left join unnest(before) as b on b.node_id = a.node_id
        left join (
            select s.node_id, s.doc_id
            from contextforge.search_nodes as s
            where s.tenant_id = tenant and s.node_id = any(node_ids)
        ) as kept on kept.node_id = a.node_id
        where a.searchable_text is not null
        order by a.node_id
        on conflict (tenant_id, node_id) do update
            set doc_id = excluded.doc_id, article_id = excluded.article_id,
                text_length = excluded.text_length, in_ann = false,
                node_type = excluded.node_type, dataset_name = excluded.dataset_name,
                lang = excluded.lang, space_id = excluded.space_id, acl = excluded.acl,
                embedding = excluded.embedding
        returning s.node_id, s.doc_id, s.text_length
    )

    select
        coalesce(array_agg(w.doc_id order by w.doc_id), '{}'),
        coalesce(array_agg(a.searchable_text order by w.doc_id), '{}'),
        coalesce(array_agg(w.text_length order by w.doc_id), '{}')
    into added_docs, added_texts, added_lengths
    from written as w
    join unnest(after) as a on a.node_id = w.node_id
    left join unnest(before) as b on b.node_id = a.node_id
    where a.content_hash is distinct from b.content_hash;

    -- After the rows above are locked: a refresh that held them has brought its copies in by now.
    delete from contextforge.ann_nodes as x
    where x.tenant_id = tenant and x.node_id = any(node_ids);
    perform contextforge.write_segment(
        tenant, added_docs, added_texts, added_lengths, removed_texts, removed_lengths,
        array(
            select distinct coalesce(contextforge.text_config(a.lang), default_config)
            from unnest(after) as a
            where a.searchable_text is not null
        )
    );
end
$$;

comment on function contextforge.index_nodes(
    public.knowledge_nodes[], public.knowledge_nodes[], regconfig
) is
'Brings the search tables up to date with rows that were (before) and are now (after): narrow '
'rows and vectors, one segment, and nothing of theirs left in the ANN table.';

revoke all on function contextforge.index_nodes(
    public.knowledge_nodes[], public.knowledge_nodes[], regconfig
) from public;
grant execute on function contextforge.index_nodes(
    public.knowledge_nodes[], public.knowledge_nodes[], regconfig
) to contextforge_api;
