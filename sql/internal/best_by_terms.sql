create or replace function contextforge.best_by_terms(
    tenant_ids text[],
    lexemes text[],
    weights double precision[],
    flat double precision,
    slope double precision,
    kept contextforge.search_filter,
    depth integer
)
returns table (node_id integer, total double precision)
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
    probe integer := depth * case when contextforge.is_unfiltered(kept) then 2 else 20 end;
    candidates bigint;
    lowest double precision;
    ids integer[];
    scores double precision[];
begin
    -- First the best by score alone, looked up afterwards: dead and filtered ones fall out. Only
    -- if too few are left, or a tie runs past the end, every match is looked up.
    loop
        with scored as (
            select
                (e.posting >> 30)::integer as doc_id,
                sum(round(
                    e.weight * ((e.posting >> 20) & 1023)
                    / (((e.posting >> 20) & 1023) + flat + slope * (e.posting & 1048575))
                )) as total
            from (
                select w.weight, unnest(p.packed) as posting
                from unnest(lexemes, weights) as w (lexeme, weight)
                join contextforge.postings as p
                    on p.tenant_id = any(tenant_ids) and p.lexeme = w.lexeme
                where p.lexeme = any(lexemes)
            ) as e
            group by 1
        ),

        best as materialized (
            select c.doc_id, c.total
            from scored as c
            order by c.total desc, c.doc_id
            limit probe
        ),

        found as (
            select s.tenant_id, s.node_id, c.total
            from best as c
            join contextforge.search_nodes as s on s.doc_id = c.doc_id
            -- The tenant in a form no index serves: the way is by doc_id, also where the planner
            -- takes a tenant that is new to its statistics for an empty one.
            where s.tenant_id || '' = any(tenant_ids)
                and s.doc_id = any(array(select b.doc_id from best as b))
                and contextforge.passes_filter(
                    kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang,
                    s.space_id, s.acl
                )
            order by c.total desc, s.tenant_id, s.node_id
            limit depth
        )

        select
            (select count(*) from best), (select min(c.total) from best as c),
            array(select f.node_id from found as f order by f.total desc, f.tenant_id, f.node_id),
            array(select f.total from found as f order by f.total desc, f.tenant_id, f.node_id)
        into candidates, lowest, ids, scores;
        exit when probe is null or candidates < probe
            or (cardinality(ids) = depth and scores[depth] > lowest);
        probe := null;
    end loop;

    return query select r.node_id, r.total from unnest(ids, scores) as r (node_id, total);
end
$$;

comment on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) is
'The best live nodes under the filters by the sum of what these terms add, each weight * tf / '
'(tf + flat + slope * length) rounded to a whole number; ties break on node_id.';

revoke all on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) from public;
grant execute on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
