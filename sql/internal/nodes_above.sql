create or replace function contextforge.nodes_above(
    tenant_ids text[],
    lexemes text[],
    weights double precision[],
    flat double precision,
    slope double precision,
    kept contextforge.search_filter,
    least_total double precision
)
returns integer[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set work_mem = '64MB'
-- Array lengths are unknown to the planner: without this it sorts all postings to group them.
set enable_sort = off
-- For the same reason it would join by nested loops, each posting against each node.
set enable_nestloop = off
-- Without statistics it would meet the few rows of a doc_id with all rows of the tenant.
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    above integer[];
begin
    with scored as materialized (
        select (e.posting >> 30)::integer as doc_id
        from (
            select w.weight, unnest(p.packed) as posting
            from unnest(lexemes, weights) as w (lexeme, weight)
            join contextforge.postings as p
                on p.tenant_id = any(tenant_ids) and p.lexeme = w.lexeme
            where p.lexeme = any(lexemes)
        ) as e
        group by 1
        having sum(round(
            e.weight * ((e.posting >> 20) & 1023)
            / (((e.posting >> 20) & 1023) + flat + slope * (e.posting & 1048575))
        )) >= least_total
    )

    select array_agg(s.node_id) into above
    from contextforge.search_nodes as s
    where s.tenant_id || '' = any(tenant_ids)
        and s.doc_id = any(array(select c.doc_id from scored as c))
        and contextforge.passes_filter(
            kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang, s.space_id, s.acl
        );
    return coalesce(above, '{}');
end
$$;

comment on function contextforge.nodes_above(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, double precision
) is
'The live nodes under the filters to which these terms add at least a total; see best_by_terms.';

revoke all on function contextforge.nodes_above(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, double precision
) from public;
grant execute on function contextforge.nodes_above(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, double precision
) to contextforge_api, contextforge_analyst;
