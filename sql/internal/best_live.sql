create or replace function contextforge.best_live(
    tenant_ids text[],
    doc_ids integer[],
    totals double precision[],
    kept contextforge.search_filter,
    depth integer
)
returns table (node_id integer, total double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
-- Array lengths are unknown to the planner: without this it would join each against each.
set enable_nestloop = off
-- Without statistics it would meet the few rows of a doc_id with all rows of the tenant.
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    return query
    select s.node_id, d.total
    from unnest(doc_ids, totals) as d (doc_id, total)
    join contextforge.search_nodes as s on s.doc_id = d.doc_id
    -- The tenant in a form no index serves: the way is by doc_id, also where the planner takes a
    -- tenant that is new to its statistics for an empty one.
    where s.tenant_id || '' = any(tenant_ids)
        and s.doc_id = any(doc_ids)
        and contextforge.passes_filter(
            kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang, s.space_id, s.acl
        )
    order by d.total desc, s.tenant_id, s.node_id
    limit depth;
end
$$;

comment on function contextforge.best_live(
    text[], integer[], double precision[], contextforge.search_filter, integer
) is
'The best nodes of these documents: those that live and pass the filters, by total; ties break on '
'node_id.';

revoke all on function contextforge.best_live(
    text[], integer[], double precision[], contextforge.search_filter, integer
) from public;
grant execute on function contextforge.best_live(
    text[], integer[], double precision[], contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
