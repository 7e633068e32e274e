create or replace function public.hybrid_search_nodes(
    query_text text,
    query_embedding vector,
    tenant_ids text[],
    node_types text[],
    top_k integer default 20,
    bm25_weight double precision default 0.4,
    vector_weight double precision default 0.6,
    dataset_name text default null,
    filters jsonb default null,
    fusion text default 'rrf',
    rrf_k integer default 60,
    min_relevance double precision default null
)
returns table (
    node_id integer,
    bm25_score double precision,
    vector_score double precision,
    combined_score double precision
)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
begin
    perform contextforge.check_search(
        query_text, query_embedding, tenant_ids, top_k, bm25_weight, vector_weight, fusion, rrf_k,
        min_relevance
    );
    return query
    select r.node_id, r.bm25_score, r.vector_score, r.combined_score
    from contextforge.run_search(
        query_text, query_embedding, tenant_ids, top_k, bm25_weight, vector_weight,
        contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters),
        fusion, rrf_k, min_relevance
    ) as r;
end
$$;

comment on function public.hybrid_search_nodes(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) is
'Nodes of the tenants that answer a query, best first: true BM25 and cosine, fused. '
'Each leg gives its best max(100, 5 * top_k) nodes under the filters. '
'bm25_score = sum of idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average length)), '
'idf = ln(1 + (N - df + 0.5) / (df + 0.5)), statistics of the named tenants alone. '
'vector_score = cosine. combined_score in [0, 1]: rrf = sum of weight / (rrf_k + rank) divided by '
'the sum of weights / (rrf_k + 1), over the legs that ran; convex = weighted mean of '
'bm25 / max bm25 and (cosine + 1) / max (cosine + 1). Ties break on node_id. '
'query_embedding null = keywords only; query_text null = vectors only; node_types null = all. '
'filters: lang, space_id, doc, metadata, acl. min_relevance cuts on the absolute scale.';

revoke all on function public.hybrid_search_nodes(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) from public;
grant execute on function public.hybrid_search_nodes(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) to contextforge_api, contextforge_analyst;
