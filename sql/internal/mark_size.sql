create or replace function contextforge.mark_size(tenant_id text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    insert into public.size_marks as m (
        tenant_id, marked_on, nodes, vectors, segments, postings, dead_postings, bytes
    )
    select
        mark_size.tenant_id, current_date, n.nodes, v.vectors, s.segments, s.postings,
        s.dead_postings, n.bytes + v.bytes + p.bytes + a.bytes
    from (
        -- Column by column: the size of a whole row would fetch what lies out of line.
        select
            count(*) as nodes,
            coalesce(sum(
                pg_column_size(k.title) + pg_column_size(k.summary) + pg_column_size(k.content)
                + pg_column_size(k.metadata)
                + coalesce(pg_column_size(k.searchable_text), 0)
                + coalesce(pg_column_size(k.embedding), 0)
            ), 0) as bytes
        from public.knowledge_nodes as k
        where k.tenant_id = mark_size.tenant_id
    ) as n
    cross join (
        select count(x.embedding) as vectors, coalesce(sum(pg_column_size(x.embedding)), 0) as bytes
        from contextforge.search_nodes as x
        where x.tenant_id = mark_size.tenant_id
    ) as v
    cross join (
        select
            count(*) as segments, coalesce(sum(g.postings), 0) as postings,
            coalesce(sum(g.postings - g.live_postings), 0) as dead_postings
        from contextforge.segments as g
        where g.tenant_id = mark_size.tenant_id
    ) as s
    cross join (
        select coalesce(sum(pg_column_size(l.packed) + pg_column_size(l.lexeme)), 0) as bytes
        from contextforge.postings as l
        where l.tenant_id = mark_size.tenant_id
    ) as p
    cross join (
        select coalesce(sum(pg_column_size(i.embedding)), 0) as bytes
        from contextforge.ann_nodes as i
        where i.tenant_id = mark_size.tenant_id
    ) as a
    on conflict (tenant_id, marked_on) do update
        set nodes = excluded.nodes, vectors = excluded.vectors, segments = excluded.segments,
            postings = excluded.postings, dead_postings = excluded.dead_postings,
            bytes = excluded.bytes;
end
$$;

comment on function contextforge.mark_size(text) is
'For the owner: keeps how much a tenant stores today, once a day, the last count of the day. Bytes '
'are those of texts, vectors and postings, without indexes and row headers.';

revoke all on function contextforge.mark_size(text) from public;
