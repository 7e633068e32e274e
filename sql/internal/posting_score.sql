create or replace function contextforge.posting_score(
    posting bigint, weight double precision, flat double precision, slope double precision
)
returns double precision
language sql
immutable
parallel safe
return round(
    weight * ((posting >> 20) & 1023)
    / (((posting >> 20) & 1023) + flat + slope * (posting & 1048575))
);

comment on function contextforge.posting_score(
    bigint, double precision, double precision, double precision
) is
'What a term adds to a document, as a whole number: weight * tf / (tf + flat + slope * length), of '
'a posting packed as doc_id << 30 | tf << 20 | length.';

revoke all on function contextforge.posting_score(
    bigint, double precision, double precision, double precision
) from public;
grant execute on function contextforge.posting_score(
    bigint, double precision, double precision, double precision
) to contextforge_api, contextforge_analyst;
