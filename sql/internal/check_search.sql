create or replace function contextforge.check_search(
    query_text text,
    query_embedding vector,
    tenant_ids text[],
    top_k integer,
    bm25_weight double precision,
    vector_weight double precision,
    fusion text,
    rrf_k integer,
    min_relevance double precision
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
declare
    wrong text;
    remedy text;
begin
    perform contextforge.require_tenants(tenant_ids);
    select c.problem, c.hint into wrong, remedy
    from (
        values
        (
            1, top_k is null or top_k not between 1 and 1000,
            format('top_k is %s', coalesce(top_k::text, 'null')), 'Use 1 to 1000.'
        ),
        (
            2, coalesce(query_text, '') = '' and query_embedding is null,
            'neither query_text nor query_embedding is given', 'Give one of them, or both.'
        ),
        (
            3, not coalesce(
                (bm25_weight = 0 or bm25_weight between 1e-300 and 1e6)
                and (vector_weight = 0 or vector_weight between 1e-300 and 1e6), false
            ),
            'a weight is null, negative, not a number or next to nothing',
            'Use weights such as 0.4 and 0.6.'
        ),
        (
            4, coalesce(bm25_weight + vector_weight, 0) = 0,
            'both weights are zero', 'Use weights such as 0.4 and 0.6.'
        ),
        (
            5, (coalesce(query_text, '') = '' or bm25_weight = 0)
            and (query_embedding is null or vector_weight = 0),
            'the only query given has weight zero', 'Give the query whose weight is not zero.'
        ),
        (
            6, coalesce(fusion, '') not in ('rrf', 'convex'),
            format('fusion "%s" is unknown', fusion), 'Use rrf or convex.'
        ),
        (
            7, coalesce(rrf_k, 0) < 1, 'rrf_k is not positive', 'The usual value is 60.'
        ),
        (
            8, not coalesce(min_relevance between 0 and 1, true),
            'min_relevance is not between 0 and 1',
            'Presets are 0.75 (strict), 0.60 (balanced) and 0.50 (permissive).'
        )
    ) as c (place, fails, problem, hint)
    where c.fails
    order by c.place
    limit 1;
    if wrong is not null then
        raise exception '%', wrong using errcode = 'invalid_parameter_value', hint = remedy;
    end if;
    perform contextforge.check_query_embedding(tenant_ids, query_embedding);
end
$$;

comment on function contextforge.check_search(
    text, vector, text[], integer, double precision, double precision, text, integer,
    double precision
) is
'Raises 42501 for a tenant the caller may not see and 22023, with a hint, for an argument that '
'cannot be searched with.';

revoke all on function contextforge.check_search(
    text, vector, text[], integer, double precision, double precision, text, integer,
    double precision
) from public;
grant execute on function contextforge.check_search(
    text, vector, text[], integer, double precision, double precision, text, integer,
    double precision
) to contextforge_api, contextforge_analyst;
