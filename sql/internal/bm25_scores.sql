create or replace function contextforge.bm25_scores(
    tenant_ids text[],
    node_ids integer[],
    lexemes text[],
    idfs double precision[],
    average_length double precision
)
returns table (
    tenant_id text, node_id integer, lexeme text, tf integer, score double precision
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    k1 constant double precision := 1.2;
    b constant double precision := 0.75;
    scale constant double precision := contextforge.bm25_scale(idfs);
begin
    return query
    select
        n.tenant_id, n.node_id, w.lexeme, t.tf,
        round(
            w.idf * (k1 + 1) * scale * t.tf
            / (t.tf + k1 * (1 - b) + k1 * b / average_length * s.text_length)
        ) / scale
    from public.knowledge_nodes as n
    join contextforge.search_nodes as s on s.tenant_id = n.tenant_id and s.node_id = n.node_id
    cross join lateral unnest(n.searchable_text) as u
    cross join lateral (select coalesce(cardinality(u.positions), 1) as tf) as t
    join unnest(lexemes, idfs) as w (lexeme, idf) on w.lexeme = u.lexeme
    where n.tenant_id = any(tenant_ids) and n.node_id = any(node_ids);
end
$$;

comment on function contextforge.bm25_scores(
    text[], integer[], text[], double precision[], double precision
) is
'What each term adds to the BM25 score of each of a few nodes; the formula of bm25_leg.';

revoke all on function contextforge.bm25_scores(
    text[], integer[], text[], double precision[], double precision
) from public;
grant execute on function contextforge.bm25_scores(
    text[], integer[], text[], double precision[], double precision
) to contextforge_api, contextforge_analyst;
