create or replace function public.explain_hybrid_search(
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
    bm25_rank integer,
    vector_rank integer,
    bm25_score double precision,
    vector_score double precision,
    combined_score double precision,
    relevance double precision,
    band text,
    terms jsonb,
    vector_path text,
    vector_rows bigint,
    shortfall text
)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
    lexemes text[];
    idfs double precision[];
    average_length double precision;
    path text;
    path_rows bigint;
begin
    perform contextforge.check_search(
        query_text, query_embedding, tenant_ids, top_k, bm25_weight, vector_weight, fusion, rrf_k,
        min_relevance
    );
    kept := contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters);
    select array_agg(t.lexeme), array_agg(t.idf), max(t.average)
    into lexemes, idfs, average_length
    from contextforge.term_weights(
        tenant_ids, contextforge.query_lexemes(tenant_ids, query_text, kept.lang)
    ) as t;
    if query_embedding is not null and vector_weight > 0 then
        select c.path, contextforge.count_searchable(tenant_ids, kept) into path, path_rows
        from contextforge.choose_vector_path(tenant_ids, kept) as c;
    end if;

    return query
    with results as materialized (
        select r.*
        from contextforge.run_search(
            query_text, query_embedding, tenant_ids, top_k, bm25_weight, vector_weight, kept,
            fusion, rrf_k, min_relevance
        ) as r
    ),

    parts as (
        select b.node_id, jsonb_object_agg(b.lexeme, b.score) as terms
        from contextforge.bm25_scores(
            tenant_ids, array(select r.node_id from results as r), lexemes, idfs, average_length
        ) as b
        group by b.node_id
    ),

    summary as (
        select contextforge.shortfall(
            count(*), top_k,
            case when count(*) < top_k then contextforge.count_searchable(tenant_ids, kept) end,
            min_relevance, lexemes is not null, path is not null
        ) as shortfall
        from results
    )

    select
        r.node_id, r.bm25_rank, r.vector_rank, r.bm25_score, r.vector_score, r.combined_score,
        r.relevance, contextforge.relevance_band(r.relevance),
        case when r.node_id is not null then coalesce(p.terms, '{}') end,
        path, path_rows, s.shortfall
    from summary as s
    left join results as r on true
    left join parts as p on p.node_id = r.node_id
    order by r.combined_score desc, r.node_id;
end
$$;

comment on function public.explain_hybrid_search(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) is
'hybrid_search_nodes with its reasons: ranks in both legs, what each term adds to BM25, relevance '
'and its band, the path of the vector leg (exact, hnsw or ivfflat), how many rows of the tenants '
'the filters left it, and why fewer than top_k came back. '
'Without any result one row remains, its node_id null, to say why.';

revoke all on function public.explain_hybrid_search(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) from public;
grant execute on function public.explain_hybrid_search(
    text, vector, text[], text[], integer, double precision, double precision, text, jsonb, text,
    integer, double precision
) to contextforge_api, contextforge_analyst;
