create or replace function public.vector_search_nodes(
    query_embedding vector,
    tenant_ids text[],
    node_types text[] default null,
    top_k integer default 20,
    similarity_threshold double precision default null,
    dataset_name text default null,
    filters jsonb default null
)
returns table (node_id integer, vector_score double precision)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
begin
    perform contextforge.check_search(
        null, query_embedding, tenant_ids, top_k, 1, 1, 'rrf', 60, null
    );
    kept := contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters);
    return query
    select l.node_id, l.score
    from contextforge.choose_vector_path(tenant_ids, kept) as c
    cross join lateral contextforge.vector_leg(
        tenant_ids, query_embedding, kept, top_k, c.path
    ) as l
    where similarity_threshold is null or l.score >= similarity_threshold;
end
$$;

comment on function public.vector_search_nodes(
    vector, text[], text[], integer, double precision, text, jsonb
) is
'The vector leg of hybrid_search_nodes alone: nodes by cosine, best first, at least '
'similarity_threshold where one is given.';

revoke all on function public.vector_search_nodes(
    vector, text[], text[], integer, double precision, text, jsonb
) from public;
grant execute on function public.vector_search_nodes(
    vector, text[], text[], integer, double precision, text, jsonb
) to contextforge_api, contextforge_analyst;
