create or replace function public.merge_segments(
    tenant_id text, everything boolean default false
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
set work_mem = '64MB'
set enable_nestloop = off
as $$
#variable_conflict use_column
declare
    fan_in constant integer := 8;
    merged bigint[];
    segment bigint;
begin
    perform contextforge.require_tenants(array[merge_segments.tenant_id]);
    -- One merge a tenant at a time; whoever comes second has nothing to do.
    if not pg_try_advisory_xact_lock(
        hashtextextended('contextforge merge ' || merge_segments.tenant_id, 0)
    ) then
        return 0;
    end if;

    -- Segments of about the same size are folded once there are enough of them, so each posting
    -- is copied about log(size) times in its life.
    select array_agg(s.segment_id) into merged
    from (
        select
            s.segment_id,
            count(*) over (partition by floor(log(fan_in, greatest(s.postings, 1)))) as alike
        from contextforge.segments as s
        where s.tenant_id = merge_segments.tenant_id
    ) as s
    where everything or s.alike >= fan_in;
    if merged is null then
        return 0;
    end if;
    segment := nextval('contextforge.segment_ids');

    with folded as (
        delete from contextforge.postings as p
        where p.tenant_id = merge_segments.tenant_id and p.segment_id = any(merged)
        returning p.lexeme, p.documents, p.packed
    ),

    live as (
        select e.lexeme, array_agg(e.posting) as packed
        from (select f.lexeme, unnest(f.packed) as posting from folded as f) as e
        join contextforge.search_nodes as s
            on s.tenant_id = merge_segments.tenant_id
                and s.doc_id = (e.posting >> 30)::integer
        group by e.lexeme
    ),

    -- documents stays the sum: if a dead posting was counted off in a segment that is not part of
    -- this merge, the balance is right only with that segment, as before.
    written as (
        insert into contextforge.postings (tenant_id, lexeme, segment_id, documents, packed)
        select
            merge_segments.tenant_id, f.lexeme, segment, f.documents,
            -- Sorted list by list: sorting all of them at once takes several times as long.
            array(select unnest(l.packed) order by 1)
        from (
            select f.lexeme, sum(f.documents) as documents from folded as f group by f.lexeme
        ) as f
        left join live as l on l.lexeme = f.lexeme
        where f.documents <> 0 or l.packed is not null
        returning cardinality(packed) as postings
    ),

    gone as (
        delete from contextforge.segments as s
        where s.tenant_id = merge_segments.tenant_id and s.segment_id = any(merged)
        returning s.documents, s.total_length, s.live_postings, s.text_configs, s.created_at
    )

    insert into contextforge.segments (
        tenant_id, segment_id, documents, total_length, postings, live_postings, text_configs,
        created_at
    )
    select
        merge_segments.tenant_id, segment, sum(g.documents), sum(g.total_length),
        (select coalesce(sum(w.postings), 0) from written as w), sum(g.live_postings),
        array(select distinct unnest(x.text_configs) from gone as x), max(g.created_at)
    from gone as g;
    return cardinality(merged);
end
$$;

comment on function public.merge_segments(text, boolean) is
'Folds segments of a tenant that are about the same size, eight or more, into one, or all of them '
'(everything), and drops dead postings. Readers are not blocked, results stay the same. '
'Returns how many segments were folded.';

revoke all on function public.merge_segments(text, boolean) from public;
grant execute on function public.merge_segments(text, boolean) to contextforge_api;
