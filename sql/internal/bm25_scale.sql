create or replace function contextforge.bm25_scale(idfs double precision[])
returns double precision
language sql
immutable
parallel safe
return 2::double precision ^ (
    50 - ceil(log(2, (greatest((select sum(i) from unnest(idfs) as i), 1e-9) * 2.2)::numeric))
)::double precision;

comment on function contextforge.bm25_scale(double precision[]) is
'A power of two that makes BM25 contributions whole numbers whose sum stays below 2^51: adding '
'them is then exact, and their order, which depends on the plan, cannot matter.';

revoke all on function contextforge.bm25_scale(double precision[]) from public;
grant execute on function contextforge.bm25_scale(double precision[])
to contextforge_api, contextforge_analyst;
