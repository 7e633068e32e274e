create or replace function contextforge.ann_scan(
    tenant_ids text[],
    query_embedding halfvec,
    kept contextforge.search_filter,
    depth integer,
    method text,
    operator text,
    effort integer
)
returns integer[]
language plpgsql
stable
-- set_config is refused while a parallel query runs: no caller may be safe either.
parallel unsafe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
-- The path was chosen before; these leave the planner no other way than the ANN index.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    effort_name constant text := case method when 'hnsw' then 'hnsw.ef_search'
        else 'ivfflat.probes' end;
    scan_name constant text := method || '.iterative_scan';
    effort_before text;
    scan_before text;
    near integer[];
begin
    -- Not in a SET clause: the owner may name these only where pgvector happens to be loaded. The
    -- caller's own values come back below; after an error, with the end of its transaction.
    effort_before := current_setting(effort_name);
    scan_before := current_setting(scan_name);
    perform set_config(scan_name, 'relaxed_order', true);
    perform set_config(
        effort_name,
        case method when 'hnsw' then least(1000, greatest(effort, depth)) else effort end::text,
        true
    );

    -- Each operator has an index of its own, so the operator decides which one is read.
    if operator = 'cosine' then
        select array_agg(a.node_id) into near
        from (
            select a.node_id
            from contextforge.ann_nodes as a
            where a.tenant_id = any(tenant_ids)
                and contextforge.passes_filter(
                    kept, a.node_id, a.article_id, a.node_type, a.dataset_name, a.lang, a.space_id,
                    a.acl
                )
            order by a.embedding <=> query_embedding
            limit depth
        ) as a;
    else
        select array_agg(a.node_id) into near
        from (
            select a.node_id
            from contextforge.ann_nodes as a
            where a.tenant_id = any(tenant_ids)
                and contextforge.passes_filter(
                    kept, a.node_id, a.article_id, a.node_type, a.dataset_name, a.lang, a.space_id,
                    a.acl
                )
            order by a.embedding <#> query_embedding
            limit depth
        ) as a;
    end if;
    perform set_config(effort_name, effort_before, true);
    perform set_config(scan_name, scan_before, true);
    return coalesce(near, '{}');
end
$$;

comment on function contextforge.ann_scan(
    text[], halfvec, contextforge.search_filter, integer, text, text, integer
) is
'About the nearest nodes by an ANN index of this kind and operator, searched with this effort, '
'under the filters, in no particular order. Vectors have length 1: both operators order alike.';

revoke all on function contextforge.ann_scan(
    text[], halfvec, contextforge.search_filter, integer, text, text, integer
) from public;
grant execute on function contextforge.ann_scan(
    text[], halfvec, contextforge.search_filter, integer, text, text, integer
) to contextforge_api, contextforge_analyst;
