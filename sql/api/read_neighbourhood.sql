create or replace function public.read_neighbourhood(
    node_ids integer[],
    tenant_ids text[],
    max_nodes integer default 200,
    max_links integer default 100,
    max_second_links integer default 20
)
returns table (source_id integer, target_id integer, weight double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(tenant_ids);
    return query
    with given as (
        select n.tenant_id, n.node_id, n.parent_id
        from public.knowledge_nodes as n
        where n.tenant_id = any(tenant_ids) and n.node_id = any(node_ids)
    ),

    first_nodes as (
        select g.tenant_id, g.node_id from given as g
        union
        select g.tenant_id, g.parent_id from given as g where g.parent_id is not null
    ),

    first_links as (
        select l.*
        from (
            select array_agg(f.tenant_id) as tenants, array_agg(f.node_id) as nodes
            from first_nodes as f
        ) as f
        cross join lateral contextforge.links_near(f.tenants, f.nodes, max_links) as l
    ),

    -- Of the nodes one link away, those go on that the most links lead to.
    second_nodes as (
        select e.tenant_id, e.node_id
        from (
            select l.tenant_id, l.source_id as node_id from first_links as l
            union all
            select l.tenant_id, l.target_id from first_links as l
        ) as e
        where not exists (select from first_nodes as f where f.node_id = e.node_id)
        group by e.tenant_id, e.node_id
        order by count(*) desc, e.node_id
        limit max_nodes
    ),

    second_links as (
        select l.*
        from (
            select array_agg(s.tenant_id) as tenants, array_agg(s.node_id) as nodes
            from second_nodes as s
        ) as s
        cross join lateral contextforge.links_near(s.tenants, s.nodes, max_second_links) as l
    ),

    -- A link between two of the nodes was found from both of its ends.
    found as (
        select l.source_id, l.target_id, l.link_type, l.weight from first_links as l
        union
        select l.source_id, l.target_id, l.link_type, l.weight from second_links as l
    )

    select f.source_id, f.target_id, sum(f.weight) as weight
    from found as f
    group by f.source_id, f.target_id
    union all
    select g.node_id, g.parent_id, 1::double precision
    from given as g
    where g.parent_id is not null
    order by 1, 2, 3;
end
$$;

comment on function public.read_neighbourhood(integer[], text[], integer, integer, integer) is
'The links within two steps of some nodes, in both directions, the weights of several between two '
'nodes added up; a section is linked to its article with weight 1. The second step starts from at '
'most max_nodes nodes. A node with more than max_links (in the second step max_second_links) in '
'one direction passes none of them on.';

revoke all on function public.read_neighbourhood(integer[], text[], integer, integer, integer)
from public;
grant execute on function public.read_neighbourhood(integer[], text[], integer, integer, integer)
to contextforge_api, contextforge_analyst;
