create or replace function contextforge.refuse_cycles(
    drafts contextforge.node_draft[], written public.knowledge_nodes[]
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = on
as $$
declare
    tenant constant text := (drafts[1].node).tenant_id;
    parents constant integer[] := array(
        select distinct w.parent_id from unnest(written) as w where w.parent_id is not null
    );
    looped record;
begin
    with recursive climb as (
        select p.node_id from unnest(parents) as p (node_id)
        union all
        select n.parent_id
        from climb
        join public.knowledge_nodes as n on n.tenant_id = tenant and n.node_id = climb.node_id
        where n.parent_id is not null
    ) cycle node_id set is_cycle using path

    select d.item, w.external_id into looped
    from climb
    join unnest(written) as w on row(w.node_id) = any(climb.path)
    join unnest(drafts) as d on (d.node).external_id = w.external_id
    where climb.is_cycle
    order by d.item
    limit 1;
    if looped.item is not null then
        raise exception 'node % ("%") would be its own ancestor', looped.item, looped.external_id
            using errcode = 'invalid_parameter_value', hint = 'Nothing of this batch was stored.';
    end if;
end
$$;

comment on function contextforge.refuse_cycles(
    contextforge.node_draft[], public.knowledge_nodes[]
) is
'Raises for the first node just written whose parents lead back to it.';

revoke all on function contextforge.refuse_cycles(
    contextforge.node_draft[], public.knowledge_nodes[]
) from public;
grant execute on function contextforge.refuse_cycles(
    contextforge.node_draft[], public.knowledge_nodes[]
) to contextforge_api;
