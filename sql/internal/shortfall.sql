create or replace function contextforge.shortfall(
    found bigint,
    asked integer,
    searchable bigint,
    min_relevance double precision,
    has_terms boolean,
    has_embedding boolean
)
returns text
language sql
immutable
parallel safe
return case
    when found >= asked then null
    when searchable = 0 then 'no searchable node passes the filters'
    when min_relevance is not null
        then format(
            '%s of %s: the rest is below min_relevance %s or matches nothing',
            found, asked, min_relevance
        )
    when has_embedding
        then format(
            '%s of %s: no other node under the filters holds a query term or has an embedding',
            found, asked
        )
    when has_terms then format('%s of %s: no other node holds a query term', found, asked)
    else 'the query has no searchable word and no embedding'
end;

comment on function contextforge.shortfall(
    bigint, integer, bigint, double precision, boolean, boolean
) is
'Why a search found fewer nodes than asked for; null if it did not.';

revoke all on function contextforge.shortfall(
    bigint, integer, bigint, double precision, boolean, boolean
) from public;
grant execute on function contextforge.shortfall(
    bigint, integer, bigint, double precision, boolean, boolean
) to contextforge_api, contextforge_analyst;
