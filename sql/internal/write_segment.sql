create or replace function contextforge.write_segment(
    tenant_id text,
    added_docs integer[],
    added_texts tsvector[],
    added_lengths integer[],
    removed_texts tsvector[],
    removed_lengths integer[],
    text_configs regconfig[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    segment constant bigint := nextval('contextforge.segment_ids');
begin
    with texts as (
        select a.doc_id, a.lexemes, a.length, 1 as sign
        from unnest(added_docs, added_texts, added_lengths) as a (doc_id, lexemes, length)
        union all
        select null, r.lexemes, r.length, -1
        from unnest(removed_texts, removed_lengths) as r (lexemes, length)
    ),

    written as (
        insert into contextforge.postings (tenant_id, lexeme, segment_id, documents, packed)
        select
            write_segment.tenant_id, u.lexeme, segment, sum(t.sign),
            coalesce(
                array_agg(
                    (t.doc_id::bigint << 30)
                    | (coalesce(cardinality(u.positions), 1)::bigint << 20)
                    | t.length::bigint
                    order by t.doc_id
                ) filter (where t.doc_id is not null),
                '{}'
            )
        from texts as t
        cross join lateral unnest(t.lexemes) as u
        group by u.lexeme
        returning cardinality(packed) as postings, documents as live_postings
    )

    insert into contextforge.segments (
        tenant_id, segment_id, documents, total_length, postings, live_postings, text_configs
    )
    select
        write_segment.tenant_id, segment,
        coalesce((select sum(t.sign) from texts as t), 0),
        coalesce((select sum(t.sign * t.length) from texts as t), 0),
        coalesce((select sum(w.postings) from written as w), 0),
        coalesce((select sum(w.live_postings) from written as w), 0),
        coalesce(write_segment.text_configs, '{}');
end
$$;

comment on function contextforge.write_segment(
    text, integer[], tsvector[], integer[], tsvector[], integer[], regconfig[]
) is
'Appends one segment: posting lists of the added texts, and what the removed ones take off the '
'statistics. Removed postings stay behind, dead, until merge_segments drops them. A write that '
'changes no text leaves an empty segment, so that its number tells that something was written.';

revoke all on function contextforge.write_segment(
    text, integer[], tsvector[], integer[], tsvector[], integer[], regconfig[]
) from public;
grant execute on function contextforge.write_segment(
    text, integer[], tsvector[], integer[], tsvector[], integer[], regconfig[]
) to contextforge_api;
