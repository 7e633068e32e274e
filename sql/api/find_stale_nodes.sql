create or replace function public.find_stale_nodes(
    tenant_id text,
    nodes jsonb,
    embedder_version text,
    dataset_name text default 'default'
)
returns table (external_id text)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[find_stale_nodes.tenant_id]);
    return query
    select x.external_id
    from jsonb_to_recordset(nodes) as x (
        external_id text, title text, summary text, header text, content text, lang text,
        searchable boolean
    )
    left join (
        select n.external_id, n.content_hash
        from public.knowledge_nodes as n
        where n.tenant_id = find_stale_nodes.tenant_id
            and n.dataset_name = find_stale_nodes.dataset_name
            and n.external_id = any(
                array(select value ->> 'external_id' from jsonb_array_elements(nodes))
            )
            and n.embedder_version = find_stale_nodes.embedder_version
            and n.embedding is not null
    ) as stored on stored.external_id = x.external_id
    where coalesce(x.searchable, true)
        and stored.content_hash is distinct from contextforge.content_hash(
            x.title, x.summary, x.header, x.content, x.lang, x.searchable
        );
end
$$;

comment on function public.find_stale_nodes(text, jsonb, text, text) is
'Which of these nodes need an embedding: they are new, their text changed, or what is stored is '
'of another embedder. The others keep theirs when they are upserted without one.';

revoke all on function public.find_stale_nodes(text, jsonb, text, text) from public;
grant execute on function public.find_stale_nodes(text, jsonb, text, text) to contextforge_api;
