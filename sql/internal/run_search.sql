-- Longer than its neighbours: a search from its terms to its scores, to be read at one sitting.
create or replace function contextforge.run_search(
    query_text text,
    query_embedding vector,
    tenant_ids text[],
    top_k integer,
    bm25_weight double precision,
    vector_weight double precision,
    kept contextforge.search_filter,
    fusion text,
    rrf_k integer,
    min_relevance double precision
)
returns table (
    node_id integer,
    bm25_rank integer,
    vector_rank integer,
    bm25_score double precision,
    vector_score double precision,
    combined_score double precision,
    relevance double precision,
    vector_path text,
    candidate_rows bigint
)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
-- No tenant table of any size is read here, so one plan serves all calls.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    depth constant integer := greatest(100, 5 * top_k);
    lexemes text[] := contextforge.query_lexemes(tenant_ids, query_text, kept.lang);
    idfs double precision[];
    frequencies bigint[];
    average_length double precision;
    idf_total double precision;
    keyword_ids integer[] := '{}';
    keyword_scores double precision[] := '{}';
    vector_ids integer[] := '{}';
    vector_scores double precision[] := '{}';
    chosen integer[];
    wb double precision := 0;
    wv double precision := 0;
    path text;
    path_rows bigint;
    raw_points double precision[];
    calibrated_points double precision[];
begin
    select array_agg(t.lexeme), array_agg(t.idf), array_agg(t.documents), max(t.average)
    into lexemes, idfs, frequencies, average_length
    from contextforge.term_weights(tenant_ids, lexemes) as t;
    idf_total := contextforge.expected_idf(
        tenant_ids, query_text, kept.lang, lexemes, idfs, frequencies
    );
    select c.raw_cosines, c.calibrated_cosines into raw_points, calibrated_points
    from contextforge.calibration(tenant_ids) as c;

    if cardinality(lexemes) > 0 and bm25_weight > 0 then
        wb := bm25_weight;
        select coalesce(array_agg(l.node_id), '{}'), coalesce(array_agg(l.score), '{}')
        into keyword_ids, keyword_scores
        from contextforge.bm25_leg(
            tenant_ids, lexemes, idfs, frequencies, average_length, kept, depth
        ) as l;
    end if;
    if query_embedding is not null and vector_weight > 0 then
        wv := vector_weight;
        select c.path, c.candidate_rows into path, path_rows
        from contextforge.choose_vector_path(tenant_ids, kept) as c;
        select coalesce(array_agg(l.node_id), '{}'), coalesce(array_agg(l.score), '{}')
        into vector_ids, vector_scores
        from contextforge.vector_leg(tenant_ids, query_embedding, kept, depth, path) as l;
    end if;
    -- By ranks alone the best are known at once, and only they need the score a leg left out.
    chosen := array(
        select f.node_id
        from contextforge.fuse_ranks(keyword_ids, vector_ids, wb, wv, rrf_k) as f
        order by f.score desc, f.node_id
        limit case when fusion = 'rrf' and min_relevance is null then top_k end
    );

    return query
    with scored as (
        select
            f.node_id, f.keyword_rank, f.vector_rank, f.score as rank_score,
            coalesce(keyword_scores[f.keyword_rank], k.score, 0) as keyword_score,
            coalesce(vector_scores[f.vector_rank], v.score) as vector_score
        from contextforge.fuse_ranks(keyword_ids, vector_ids, wb, wv, rrf_k) as f
        left join (
            select b.node_id, sum(b.score) as score
            from contextforge.bm25_scores(
                tenant_ids,
                array(select unnest(chosen) except select unnest(keyword_ids)),
                lexemes, idfs, average_length
            ) as b
            -- A leg shorter than its depth holds every match already.
            where wb = 0 or cardinality(keyword_ids) = depth
            group by b.node_id
        ) as k on k.node_id = f.node_id
        left join (
            select c.node_id, c.score
            from contextforge.vector_scores(
                tenant_ids,
                array(select unnest(chosen) except select unnest(vector_ids)),
                query_embedding
            ) as c
            where query_embedding is not null
        ) as v on v.node_id = f.node_id
        where f.node_id = any(chosen)
    ),

    judged as (
        select
            s.*,
            case fusion
                when 'rrf' then s.rank_score / (wb + wv)
                else (
                    coalesce(wb * s.keyword_score / nullif(max(s.keyword_score) over (), 0), 0)
                    + coalesce(
                        wv * (s.vector_score + 1) / nullif(max(s.vector_score + 1) over (), 0), 0
                    )
                ) / (wb + wv)
            end as combined_score,
            (
                coalesce(wb * least(1, s.keyword_score / nullif(idf_total, 0)), 0)
                + wv * coalesce(
                    greatest(
                        contextforge.calibrate(s.vector_score, raw_points, calibrated_points), 0
                    ), 0
                )
            ) / (wb + wv) as relevance
        from scored as s
    )

    select
        j.node_id, j.keyword_rank, j.vector_rank, j.keyword_score, j.vector_score,
        j.combined_score, j.relevance, path, path_rows
    from judged as j
    where min_relevance is null or j.relevance >= min_relevance
    order by j.combined_score desc, j.node_id
    limit top_k;
end
$$;

comment on function contextforge.run_search(
    text, vector, text[], integer, double precision, double precision, contextforge.search_filter,
    text, integer, double precision
) is
'Both legs under the filters, fused. rrf: weight / (rrf_k + rank), summed over the legs that ran '
'and divided by its maximum. convex: weighted mean of bm25 / max bm25 and (cosine + 1) / '
'max (cosine + 1). relevance: weighted mean of min(1, bm25 / sum of idf) and calibrated cosine.';

revoke all on function contextforge.run_search(
    text, vector, text[], integer, double precision, double precision, contextforge.search_filter,
    text, integer, double precision
) from public;
grant execute on function contextforge.run_search(
    text, vector, text[], integer, double precision, double precision, contextforge.search_filter,
    text, integer, double precision
) to contextforge_api, contextforge_analyst;
