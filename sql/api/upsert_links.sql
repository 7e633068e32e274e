create or replace function public.upsert_links(
    tenant_id text, links jsonb, dataset_name text default 'default'
)
returns table (source_id integer, target_id integer, link_type text, action text)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    bad record;
begin
    perform contextforge.require_tenants(array[upsert_links.tenant_id]);
    if links is null or jsonb_typeof(links) <> 'array' then
        raise exception 'links must be a json array of objects'
            using errcode = 'invalid_parameter_value';
    end if;

    select l.item, l.problem, l.missing into bad
    from contextforge.resolve_links(upsert_links.tenant_id, links, upsert_links.dataset_name) as l
    where l.problem is not null
    order by l.item
    limit 1;
    if bad.problem is not null then
        raise exception 'link % %', bad.item, bad.problem
            using errcode = case
                when bad.missing then 'foreign_key_violation'
                when bad.problem like 'appears more%' then 'unique_violation'
                else 'invalid_parameter_value'
            end,
            hint = 'Nothing of this batch was stored.';
    end if;

    return query
    with wanted as (
        select l.source_id, l.target_id, l.link_type, l.weight
        from contextforge.resolve_links(
            upsert_links.tenant_id, links, upsert_links.dataset_name
        ) as l
    ),

    written as (
        insert into public.node_links as k (tenant_id, source_id, target_id, link_type, weight)
        select upsert_links.tenant_id, w.source_id, w.target_id, w.link_type, w.weight
        from wanted as w
        order by w.source_id, w.target_id, w.link_type
        on conflict (tenant_id, source_id, target_id, link_type) do update
            set weight = excluded.weight where k.weight <> excluded.weight
        returning k.source_id, k.target_id, k.link_type, k.xmax = 0 as is_new
    ),

    marked as (
        insert into contextforge.link_marks (tenant_id)
        select upsert_links.tenant_id where exists (select from written)
    )

    select
        w.source_id, w.target_id, w.link_type,
        case
            when written.is_new then 'added'
            when written.source_id is not null then 'changed'
            else 'unchanged'
        end
    from wanted as w
    left join written using (source_id, target_id, link_type);
end
$$;

comment on function public.upsert_links(text, jsonb, text) is
'Stores a batch of directed links between nodes of one tenant. Each json object has source and '
'target (external_id), and may have link_type (default link), weight (default 1), '
'source_dataset and target_dataset (default the call''s). Returns added, changed or unchanged.';

revoke all on function public.upsert_links(text, jsonb, text) from public;
grant execute on function public.upsert_links(text, jsonb, text) to contextforge_api;
