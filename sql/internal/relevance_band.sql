create or replace function contextforge.relevance_band(relevance double precision)
returns text
language sql
immutable
parallel safe
return case
    when relevance >= 0.85 then 'high'
    when relevance >= 0.70 then 'good'
    when relevance >= 0.50 then 'partial'
    when relevance is not null then 'low'
end;

comment on function contextforge.relevance_band(double precision) is
'high from 0.85, good from 0.70, partial from 0.50, low below.';

revoke all on function contextforge.relevance_band(double precision) from public;
grant execute on function contextforge.relevance_band(double precision)
to contextforge_api, contextforge_analyst;
