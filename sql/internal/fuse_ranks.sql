create or replace function contextforge.fuse_ranks(
    keyword_ids integer[],
    vector_ids integer[],
    bm25_weight double precision,
    vector_weight double precision,
    rrf_k integer
)
returns table (
    node_id integer, keyword_rank integer, vector_rank integer, score double precision
)
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select
        node_id, k.place::integer, v.place::integer,
        coalesce(bm25_weight * ((rrf_k + 1::double precision) / (rrf_k + k.place)), 0)
        + coalesce(vector_weight * ((rrf_k + 1::double precision) / (rrf_k + v.place)), 0)
    from unnest(keyword_ids) with ordinality as k (node_id, place)
    full join unnest(vector_ids) with ordinality as v (node_id, place) using (node_id)
$$;

comment on function contextforge.fuse_ranks(
    integer[], integer[], double precision, double precision, integer
) is
'Weighted reciprocal rank fusion: weight * (rrf_k + 1) / (rrf_k + rank) summed over the lists that '
'hold a node, ranks from 1: the first rank gives the weight itself, without a rounding error.';

revoke all on function contextforge.fuse_ranks(
    integer[], integer[], double precision, double precision, integer
) from public;
grant execute on function contextforge.fuse_ranks(
    integer[], integer[], double precision, double precision, integer
) to contextforge_api, contextforge_analyst;
