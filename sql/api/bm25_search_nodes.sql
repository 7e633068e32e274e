create or replace function public.bm25_search_nodes(
    query_text text,
    tenant_ids text[],
    node_types text[] default null,
    top_k integer default 20,
    dataset_name text default null,
    filters jsonb default null
)
returns table (node_id integer, bm25_score double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
    lexemes text[];
    idfs double precision[];
    frequencies bigint[];
    average_length double precision;
begin
    perform contextforge.check_search(
        query_text, null, tenant_ids, top_k, 1, 1, 'rrf', 60, null
    );
    kept := contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters);
    select array_agg(t.lexeme), array_agg(t.idf), array_agg(t.documents), max(t.average)
    into lexemes, idfs, frequencies, average_length
    from contextforge.term_weights(
        tenant_ids, contextforge.query_lexemes(tenant_ids, query_text, kept.lang)
    ) as t;
    return query
    select l.node_id, l.score
    from contextforge.bm25_leg(
        tenant_ids, lexemes, idfs, frequencies, average_length, kept, top_k
    ) as l;
end
$$;

comment on function public.bm25_search_nodes(text, text[], text[], integer, text, jsonb) is
'The keyword leg of hybrid_search_nodes alone: nodes by BM25, best first.';

revoke all on function public.bm25_search_nodes(text, text[], text[], integer, text, jsonb)
from public;
grant execute on function public.bm25_search_nodes(text, text[], text[], integer, text, jsonb)
to contextforge_api, contextforge_analyst;
