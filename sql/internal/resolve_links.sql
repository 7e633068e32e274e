create or replace function contextforge.resolve_links(
    tenant_id text, links jsonb, dataset_name text
)
returns table (
    item bigint,
    source_id integer,
    target_id integer,
    link_type text,
    weight double precision,
    problem text,
    missing boolean
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    known_keys constant text[] := array[
        'source', 'target', 'link_type', 'weight', 'source_dataset', 'target_dataset'
    ];
begin
    return query
    with named as (
        select
            x.item, x.link, x.source, x.target, coalesce(x.link_type, 'link') as link_type,
            coalesce(x.weight, 1) as weight, s.node_id as source_id, t.node_id as target_id
        from rows from (
            jsonb_to_recordset(links) as (
                source text, target text, link_type text, weight double precision,
                source_dataset text, target_dataset text
            ),
            jsonb_array_elements(links)
        ) with ordinality as x (
            source, target, link_type, weight, source_dataset, target_dataset, link, item
        )
        left join public.knowledge_nodes as s
            on s.tenant_id = resolve_links.tenant_id
                and s.dataset_name = coalesce(x.source_dataset, resolve_links.dataset_name)
                and s.external_id = x.source
        left join public.knowledge_nodes as t
            on t.tenant_id = resolve_links.tenant_id
                and t.dataset_name = coalesce(x.target_dataset, resolve_links.dataset_name)
                and t.external_id = x.target
    )

    select
        n.item, n.source_id, n.target_id, n.link_type, n.weight,
        case
            when n.link - known_keys <> '{}'
                then format(
                    'has an unknown key "%s"',
                    (select min(k) from jsonb_object_keys(n.link - known_keys) as k)
                )
            when n.source is null or n.target is null then 'needs a source and a target'
            when n.source_id is null
                then format('names source "%s", which this tenant does not have', n.source)
            when n.target_id is null
                then format('names target "%s", which this tenant does not have', n.target)
            when n.link_type = '' then 'has an empty link_type'
            when not (n.weight > 0 and n.weight < 'infinity')
                then format('has weight %s; weights are positive and finite', n.weight)
            when count(*) over (partition by n.source_id, n.target_id, n.link_type) > 1
                then 'appears more than once in this batch'
        end,
        n.source is not null and n.target is not null
            and (n.source_id is null or n.target_id is null)
    from named as n;
end
$$;

comment on function contextforge.resolve_links(text, jsonb, text) is
'Links with their node ids, and what is wrong with each, if anything.';

revoke all on function contextforge.resolve_links(text, jsonb, text) from public;
grant execute on function contextforge.resolve_links(text, jsonb, text) to contextforge_api;
