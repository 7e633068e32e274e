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
-- For the same reason it would look for each term by itself, again and again.
set enable_nestloop = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    probe integer := depth * case when contextforge.is_unfiltered(kept) then 2 else 20 end;
    least_total double precision := 0;
    doc_ids integer[];
    totals double precision[];
    found_ids integer[];
    found_totals double precision[];
begin
    -- First the best by score alone, looked up afterwards: dead and filtered ones fall out.
    -- If a tie runs past the end, all of it is looked up, and if too few are left, every match.
    loop
        select array_agg(b.doc_id), array_agg(b.total) into doc_ids, totals
        from (
            select
                (e.posting >> 30)::integer as doc_id,
                sum(contextforge.posting_score(e.posting, e.weight, flat, slope)) as total
            from (
                select w.weight, unnest(p.packed) as posting
                from unnest(lexemes, weights) as w (lexeme, weight)
                join contextforge.postings as p
                    on p.tenant_id = any(tenant_ids) and p.lexeme = w.lexeme
                where p.lexeme = any(lexemes)
            ) as e
            group by 1
            having sum(contextforge.posting_score(e.posting, e.weight, flat, slope)) >= least_total
            order by 2 desc, 1
            limit probe
        ) as b;
        select array_agg(f.node_id), array_agg(f.total) into found_ids, found_totals
        from contextforge.best_live(tenant_ids, doc_ids, totals, kept, depth) as f;
        exit when probe is null or coalesce(cardinality(doc_ids), 0) < probe
            or found_totals[depth] > totals[probe];
        probe := null;
        least_total := coalesce(found_totals[depth], 0);
    end loop;

    return query
    select r.node_id, r.total from unnest(found_ids, found_totals) as r (node_id, total);
end
$$;

comment on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) is
'The best live nodes under the filters by the sum of what these terms add (posting_score); ties '
'break on node_id.';

revoke all on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) from public;
grant execute on function contextforge.best_by_terms(
    text[], text[], double precision[], double precision, double precision,
    contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
