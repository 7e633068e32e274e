create or replace function public.stand_in_nodes(
    node_ids integer[],
    tenant_ids text[],
    query_embedding vector default null,
    node_types text[] default null,
    dataset_name text default null,
    filters jsonb default null
)
returns table (linked_id integer, node_id integer)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
    nearby constant halfvec := l2_normalize(query_embedding)::halfvec;
    linked integer[];
    members integer[];
    places integer[];
begin
    perform contextforge.require_tenants(tenant_ids);
    perform contextforge.check_query_embedding(tenant_ids, query_embedding);
    kept := contextforge.parse_filters(
        tenant_ids, node_types, stand_in_nodes.dataset_name, filters
    );
    select array_agg(f.linked_id), array_agg(f.node_id), array_agg(f.order_index)
    into linked, members, places
    from (
        select n.node_id as linked_id, n.node_id, n.order_index
        from public.knowledge_nodes as n
        where n.tenant_id = any(tenant_ids) and n.node_id = any(node_ids)
        union all
        select n.parent_id, n.node_id, n.order_index
        from public.knowledge_nodes as n
        where n.tenant_id = any(tenant_ids) and n.parent_id = any(node_ids)
    ) as f;
    -- Looked up one by one: joined, a tenant without statistics is read whole for each of them.
    return query
    select distinct on (f.linked_id) f.linked_id, f.node_id
    from unnest(linked, members, places) as f (linked_id, node_id, order_index)
    cross join lateral (
        select s.*
        from contextforge.search_nodes as s
        where s.tenant_id = any(tenant_ids) and s.node_id = f.node_id
        limit 1
    ) as s
    where contextforge.passes_filter(
        kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang, s.space_id, s.acl
    )
    order by
        f.linked_id, f.node_id = f.linked_id desc, s.embedding <=> nearby, f.order_index, f.node_id;
end
$$;

comment on function public.stand_in_nodes(
    integer[], text[], vector, text[], text, jsonb
) is
'The node that search would show for each of some nodes: itself where it is searchable, else its '
'section nearest to the query, or its first one without a query. One that no filter lets through '
'has no row.';

revoke all on function public.stand_in_nodes(
    integer[], text[], vector, text[], text, jsonb
) from public;
grant execute on function public.stand_in_nodes(
    integer[], text[], vector, text[], text, jsonb
) to contextforge_api, contextforge_analyst;
