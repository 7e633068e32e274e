create or replace function contextforge.ann_candidates(
    tenant_ids text[],
    query_embedding halfvec,
    kept contextforge.search_filter,
    depth integer
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
    setting record;
    effort_name text;
    scan_name text;
    effort_before text;
    scan_before text;
    near integer[];
begin
    select x.ann_method, x.ann_search_effort into setting from contextforge.search_settings() as x;
    effort_name := case setting.ann_method
        when 'hnsw' then 'hnsw.ef_search' else 'ivfflat.probes'
    end;
    scan_name := setting.ann_method || '.iterative_scan';

    -- Not in a SET clause: the owner may name these only where pgvector happens to be loaded. The
    -- caller's own values come back below; after an error, with the end of its transaction.
    effort_before := current_setting(effort_name);
    scan_before := current_setting(scan_name);
    perform set_config(scan_name, 'relaxed_order', true);
    perform set_config(
        effort_name,
        case setting.ann_method
            when 'hnsw' then least(1000, greatest(setting.ann_search_effort, depth))
            else setting.ann_search_effort
        end::text,
        true
    );

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
    perform set_config(effort_name, effort_before, true);
    perform set_config(scan_name, scan_before, true);
    return coalesce(near, '{}');
end
$$;

comment on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) is
'About the nearest nodes by the ANN index under the filters, in no particular order.';

revoke all on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) from public;
grant execute on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
