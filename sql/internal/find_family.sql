create or replace function contextforge.find_family(
    tenant_id text, external_ids text[], dataset_name text
)
returns integer[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    return array(
        with recursive family as (
            select n.node_id
            from public.knowledge_nodes as n
            where n.tenant_id = find_family.tenant_id
                and n.dataset_name = find_family.dataset_name
                and n.external_id = any(external_ids)
            union
            select child.node_id
            from family
            join public.knowledge_nodes as child
                on child.tenant_id = find_family.tenant_id and child.parent_id = family.node_id
        )

        select f.node_id from family as f order by f.node_id
    );
end
$$;

comment on function contextforge.find_family(text, text[], text) is
'The ids of the named nodes of one tenant and dataset and of everything below them, in order.';

revoke all on function contextforge.find_family(text, text[], text) from public;
grant execute on function contextforge.find_family(text, text[], text) to contextforge_api;
