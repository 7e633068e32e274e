create or replace function contextforge.text_length(lexemes tsvector)
returns integer
language sql
immutable
parallel safe
return (
    select coalesce(sum(coalesce(cardinality(u.positions), 1)), 0)::integer
    from unnest(lexemes) as u
);

comment on function contextforge.text_length(tsvector) is
'Length of a text for BM25: its positions as the tsvector counts them.';

revoke all on function contextforge.text_length(tsvector) from public;
grant execute on function contextforge.text_length(tsvector)
to contextforge_api, contextforge_analyst;
