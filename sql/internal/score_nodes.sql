create or replace function contextforge.score_nodes(
    query_text text,
    query_embedding vector,
    tenant_ids text[],
    node_ids integer[]
)
returns table (node_id integer, bm25_score double precision, vector_score double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    lexemes text[];
    idfs double precision[];
    average_length double precision;
begin
    perform contextforge.check_search(
        query_text, query_embedding, tenant_ids, 1, 1, 1, 'rrf', 60, null
    );
    select array_agg(t.lexeme), array_agg(t.idf), max(t.average)
    into lexemes, idfs, average_length
    from contextforge.term_weights(
        tenant_ids, contextforge.query_lexemes(tenant_ids, query_text, null)
    ) as t;
    return query
    select s.node_id, coalesce(k.score, 0), v.score
    from contextforge.search_nodes as s
    left join (
        select b.node_id, sum(b.score) as score
        from contextforge.bm25_scores(tenant_ids, node_ids, lexemes, idfs, average_length) as b
        group by b.node_id
    ) as k on k.node_id = s.node_id
    left join contextforge.vector_scores(tenant_ids, node_ids, query_embedding) as v
        on v.node_id = s.node_id
    where s.tenant_id = any(tenant_ids) and s.node_id = any(node_ids)
    order by s.node_id;
end
$$;

comment on function contextforge.score_nodes(text, vector, text[], integer[]) is
'Both scores of given nodes for a query, as hybrid_search_nodes computes them, by node_id: BM25, '
'0 if no term matches, and cosine, null without an embedding. Nodes that search does not find are '
'left out.';

revoke all on function contextforge.score_nodes(text, vector, text[], integer[]) from public;
grant execute on function contextforge.score_nodes(text, vector, text[], integer[])
to contextforge_api, contextforge_analyst;
