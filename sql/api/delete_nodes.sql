create or replace function public.delete_nodes(
    tenant_id text, external_ids text [], dataset_name text default 'default'
)
returns table (external_id text, node_id integer)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    doomed integer[];
    removed_texts tsvector[];
    removed_lengths integer[];
begin
    perform contextforge.require_tenants(array[delete_nodes.tenant_id]);

    perform from public.knowledge_nodes as n
    where n.tenant_id = delete_nodes.tenant_id
        and n.dataset_name = delete_nodes.dataset_name
        and n.external_id = any(external_ids)
    order by n.external_id
    for update;
    with recursive family as (
        select n.node_id
        from public.knowledge_nodes as n
        where n.tenant_id = delete_nodes.tenant_id
            and n.dataset_name = delete_nodes.dataset_name
            and n.external_id = any(external_ids)
        union
        select child.node_id
        from family
        join public.knowledge_nodes as child
            on child.tenant_id = delete_nodes.tenant_id and child.parent_id = family.node_id
    )

    select array_agg(f.node_id) into doomed from family as f;
    if doomed is null then
        return;
    end if;

    -- Children are locked too: a writer that holds one is waited for, and its text is the last.
    perform from public.knowledge_nodes as n
    where n.tenant_id = delete_nodes.tenant_id and n.node_id = any(doomed)
    order by n.external_id
    for update;
    select
        coalesce(array_agg(n.searchable_text order by n.node_id), '{}'),
        coalesce(array_agg(s.text_length order by n.node_id), '{}')
    into removed_texts, removed_lengths
    from public.knowledge_nodes as n
    join contextforge.search_nodes as s on s.tenant_id = n.tenant_id and s.node_id = n.node_id
    where n.tenant_id = delete_nodes.tenant_id and n.node_id = any(doomed);
    delete from contextforge.ann_nodes as x
    where x.tenant_id = delete_nodes.tenant_id and x.node_id = any(doomed);
    delete from contextforge.search_nodes as s
    where s.tenant_id = delete_nodes.tenant_id and s.node_id = any(doomed);
    perform contextforge.write_segment(
        delete_nodes.tenant_id, '{}', '{}', '{}', removed_texts, removed_lengths, '{}'
    );

    return query
    delete from public.knowledge_nodes as n
    where n.tenant_id = delete_nodes.tenant_id and n.node_id = any(doomed)
    returning n.external_id, n.node_id;
end
$$;

comment on function public.delete_nodes(text, text [], text) is
'Deletes nodes by external_id, with everything below them, their links and ranks, in one '
'transaction. Returns what was deleted; an unknown external_id is no error.';

revoke all on function public.delete_nodes(text, text [], text) from public;
grant execute on function public.delete_nodes(text, text [], text) to contextforge_api;
