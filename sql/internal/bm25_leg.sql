create or replace function contextforge.bm25_leg(
    tenant_ids text[],
    lexemes text[],
    idfs double precision[],
    average_length double precision,
    kept contextforge.search_filter,
    depth integer
)
returns table (node_id integer, score double precision)
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
as $$
#variable_conflict use_column
declare
    k1 constant double precision := 1.2;
    b constant double precision := 0.75;
    flat constant double precision := k1 * (1 - b);
    slope constant double precision := k1 * b / average_length;
    scale constant double precision := contextforge.bm25_scale(idfs);
    weights constant double precision[] := array(
        select i * (k1 + 1) * scale from unnest(idfs) with ordinality as u (i, place) order by place
    );
    unfiltered constant boolean := kept is not distinct from row(
        null, null, null, null, null, null, kept.acl_groups
    )::contextforge.search_filter;
    probe integer := depth * case when unfiltered then 2 else 20 end;
    candidates bigint;
    lowest double precision;
    ids integer[];
    scores double precision[];
begin
    if average_length is null or cardinality(lexemes) = 0 then
        return;
    end if;

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

    return query select r.node_id, r.total / scale from unnest(ids, scores) as r (node_id, total);
end
$$;

comment on function contextforge.bm25_leg(
    text[], text[], double precision[], double precision, contextforge.search_filter, integer
) is
'The best nodes by BM25: sum over terms of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / '
'average length)), k1 = 1.2, b = 0.75; terms are ORed, ties break on node_id.';

revoke all on function contextforge.bm25_leg(
    text[], text[], double precision[], double precision, contextforge.search_filter, integer
) from public;
grant execute on function contextforge.bm25_leg(
    text[], text[], double precision[], double precision, contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
