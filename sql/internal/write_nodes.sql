create or replace function contextforge.write_nodes(drafts contextforge.node_draft[])
returns table (external_id text, node_id integer, action text)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    tenant constant text := (drafts[1].node).tenant_id;
    dataset constant text := (drafts[1].node).dataset_name;
    names constant text[] := array(select (d.node).external_id from unnest(drafts) as d);
    default_config regconfig;
    stale text[];
    before public.knowledge_nodes[];
    after public.knowledge_nodes[];
    known_ids integer[];
    inserted integer;
begin
    select p.text_config into default_config
    from contextforge.tenant_profiles as p where p.tenant_id = tenant;

    -- What is stored already exactly as drafted costs this comparison and nothing more. A draft
    -- without an embedding leaves the stored one in place while the text is the same.
    stale := array(
        with stored as materialized (
            select
                n.external_id, n.content_hash, n.node_type, n.title, n.summary, n.metadata,
                n.parent_id, n.section_path, n.order_index, n.header, n.doc_title, n.url, n.lang,
                n.space_id, n.acl, n.token_count, n.embedder_version, n.embedding
            from public.knowledge_nodes as n
            where n.tenant_id = tenant and n.dataset_name = dataset and n.external_id = any(names)
        ),

        parents as materialized (
            select p.node_id, p.dataset_name, p.external_id
            from public.knowledge_nodes as p
            where p.tenant_id = tenant
                and p.node_id = any(array(select s.parent_id from stored as s))
        )

        select (d.node).external_id
        from unnest(drafts) as d
        left join stored as n on n.external_id = (d.node).external_id
        left join parents as p on p.node_id = n.parent_id
        where n.content_hash is distinct from (d.node).content_hash
            or (
                n.node_type, n.title, n.summary, n.metadata, n.section_path, n.order_index,
                n.header, n.doc_title, n.url, n.lang, n.space_id, n.acl, n.token_count
            ) is distinct from (
                (d.node).node_type, (d.node).title, (d.node).summary, (d.node).metadata,
                (d.node).section_path, (d.node).order_index, (d.node).header,
                (d.node).doc_title, (d.node).url, (d.node).lang, (d.node).space_id,
                (d.node).acl, (d.node).token_count
            )
            or (d.parent is null and n.parent_id is distinct from (d.node).parent_id)
            or (
                d.parent is not null
                and (p.dataset_name, p.external_id) is distinct from (dataset, d.parent)
            )
            or (
                (d.node).embedding is not null
                and (
                    n.embedder_version is distinct from (d.node).embedder_version
                    or n.embedding is distinct from (d.node).embedding
                )
            )
        order by 1
    );
    return query
    select n.external_id, n.node_id, 'unchanged'
    from public.knowledge_nodes as n
    where n.tenant_id = tenant and n.dataset_name = dataset
        and n.external_id = any(names) and n.external_id <> all(stale);
    if cardinality(stale) = 0 then
        return;
    end if;

    before := array(
        select n
        from public.knowledge_nodes as n
        where n.tenant_id = tenant and n.dataset_name = dataset and n.external_id = any(stale)
        order by n.external_id
        for update
    );
    known_ids := array(select b.node_id from unnest(before) as b);
    after := contextforge.resolve_drafts(
        array(
            select d from unnest(drafts) as d
            where (d.node).external_id = any(stale)
            order by (d.node).external_id
        ),
        before, default_config
    );

    insert into public.knowledge_nodes
    select a.*
    from unnest(after) as a
    where a.node_id <> all(known_ids)
    order by a.external_id
    on conflict (tenant_id, dataset_name, external_id) do nothing;
    get diagnostics inserted = row_count;
    if inserted < cardinality(after) - cardinality(before) then
        raise exception 'another transaction added the same nodes'
            using errcode = 'serialization_failure',
                  hint = 'Try again; upsert_nodes does so by itself.';
    end if;

    update public.knowledge_nodes as n
    set node_type = a.node_type, title = a.title, summary = a.summary, content = a.content,
        metadata = a.metadata, parent_id = a.parent_id, section_path = a.section_path,
        order_index = a.order_index, header = a.header, doc_title = a.doc_title, url = a.url,
        lang = a.lang, space_id = a.space_id, acl = a.acl, token_count = a.token_count,
        content_hash = a.content_hash, embedder_version = a.embedder_version,
        searchable_text = a.searchable_text, embedding = a.embedding, updated_at = now()
    from unnest(after) as a
    where n.tenant_id = tenant and n.node_id = a.node_id
        and a.node_id = any(known_ids);

    perform contextforge.refuse_cycles(drafts, after);
    perform contextforge.index_nodes(before, after, default_config);

    return query
    select
        a.external_id, a.node_id,
        case when b.node_id is null then 'added' else 'changed' end
    from unnest(after) as a
    left join unnest(before) as b on b.node_id = a.node_id;
end
$$;

comment on function contextforge.write_nodes(contextforge.node_draft[]) is
'One attempt at storing a batch of one tenant and dataset: nodes, search rows and one segment. '
'Raises 40001 when another transaction adds the same nodes at the same time.';

revoke all on function contextforge.write_nodes(contextforge.node_draft[]) from public;
grant execute on function contextforge.write_nodes(contextforge.node_draft[])
to contextforge_api;
