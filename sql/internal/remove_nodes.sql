create or replace function contextforge.remove_nodes(
    tenant_id text, external_ids text[], dataset_name text
)
returns table (external_id text, node_id integer)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    doomed constant integer[] := contextforge.find_family(
        remove_nodes.tenant_id, external_ids, remove_nodes.dataset_name
    );
    removed_texts tsvector[];
    removed_lengths integer[];
begin
    -- In the order in which upsert_nodes locks them: who comes second waits, and none for ever.
    perform from public.knowledge_nodes as n
    where n.tenant_id = remove_nodes.tenant_id and n.node_id = any(doomed)
    order by n.external_id, n.node_id
    for update;
    -- Looked for again: children may have come or gone while the locks were waited for.
    if doomed <> contextforge.find_family(
        remove_nodes.tenant_id, external_ids, remove_nodes.dataset_name
    ) then
        raise exception 'another transaction changed the same nodes'
            using errcode = 'serialization_failure',
                  hint = 'Try again; delete_nodes does so by itself.';
    end if;

    select
        coalesce(array_agg(n.searchable_text order by n.node_id), '{}'),
        coalesce(array_agg(s.text_length order by n.node_id), '{}')
    into removed_texts, removed_lengths
    from public.knowledge_nodes as n
    join contextforge.search_nodes as s on s.tenant_id = n.tenant_id and s.node_id = n.node_id
    where n.tenant_id = remove_nodes.tenant_id and n.node_id = any(doomed);
    -- Search rows first: refresh_ann holds them while it adds ANN rows, which are then seen here.
    delete from contextforge.search_nodes as s
    where s.tenant_id = remove_nodes.tenant_id and s.node_id = any(doomed);
    delete from contextforge.ann_nodes as x
    where x.tenant_id = remove_nodes.tenant_id and x.node_id = any(doomed);
    if cardinality(doomed) > 0 then
        perform contextforge.write_segment(
            remove_nodes.tenant_id, '{}', '{}', '{}', removed_texts, removed_lengths, '{}'
        );
    end if;

    insert into contextforge.link_marks (tenant_id)
    select remove_nodes.tenant_id
    where exists (
        select from public.node_links as l
        where l.tenant_id = remove_nodes.tenant_id and l.source_id = any(doomed)
    ) or exists (
        select from public.node_links as l
        where l.tenant_id = remove_nodes.tenant_id and l.target_id = any(doomed)
    );

    return query
    delete from public.knowledge_nodes as n
    where n.tenant_id = remove_nodes.tenant_id and n.node_id = any(doomed)
    returning n.external_id, n.node_id;
end
$$;

comment on function contextforge.remove_nodes(text, text[], text) is
'One attempt at deleting nodes of one tenant and dataset with everything below them. Raises 40001 '
'when another transaction changes what is below them at the same time.';

revoke all on function contextforge.remove_nodes(text, text[], text) from public;
grant execute on function contextforge.remove_nodes(text, text[], text) to contextforge_api;
