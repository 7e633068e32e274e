create or replace function contextforge.links_near(
    tenant_ids text[], node_ids integer[], max_links integer
)
returns table (
    tenant_id text, source_id integer, target_id integer, link_type text, weight double precision
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    return query
    select l.tenant_id, l.source_id, l.target_id, l.link_type, l.weight
    from unnest(tenant_ids, node_ids) as n (tenant_id, node_id)
    cross join lateral (
        -- Either all of them or none count, so it does not matter which ones the limit leaves.
        select few.*, count(*) over () as links
        from (
            select o.tenant_id, o.source_id, o.target_id, o.link_type, o.weight
            from public.node_links as o
            where o.tenant_id = n.tenant_id and o.source_id = n.node_id
            limit max_links + 1
        ) as few
        union all
        select few.*, count(*) over () as links
        from (
            select i.tenant_id, i.source_id, i.target_id, i.link_type, i.weight
            from public.node_links as i
            where i.tenant_id = n.tenant_id and i.target_id = n.node_id
            limit max_links + 1
        ) as few
    ) as l
    where l.links <= max_links;
end
$$;

comment on function contextforge.links_near(text[], integer[], integer) is
'The links from and to each of some nodes, given with their tenants. A node with more than '
'max_links in one direction points everywhere, hence nowhere: those of it are left out.';

revoke all on function contextforge.links_near(text[], integer[], integer) from public;
grant execute on function contextforge.links_near(text[], integer[], integer)
to contextforge_api, contextforge_analyst;
