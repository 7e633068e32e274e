create or replace function public.link_references(
    tenant_id text, dataset_name text default 'default'
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
as $$
#variable_conflict use_column
declare
    linked integer;
begin
    perform contextforge.require_tenants(array[link_references.tenant_id]);

    insert into public.node_links (tenant_id, source_id, target_id, link_type)
    select distinct link_references.tenant_id, r.source_id, target.node_id, 'hyperlink'
    from contextforge.node_references as r
    join public.knowledge_nodes as source
        on source.tenant_id = link_references.tenant_id and source.node_id = r.source_id
    join public.knowledge_nodes as target
        on target.tenant_id = link_references.tenant_id
            and target.dataset_name = link_references.dataset_name
            and target.parent_id is null
            and case r.kind when 'title' then contextforge.fold_title(r.target) else r.target end
                = case r.kind
                    when 'path' then target.external_id
                    when 'url' then target.url
                    else contextforge.fold_title(target.title)
                end
    where r.tenant_id = link_references.tenant_id
        and source.dataset_name = link_references.dataset_name
        and target.node_id <> r.source_id
    order by 2, 3
    on conflict do nothing;
    get diagnostics linked = row_count;
    if linked > 0 then
        insert into contextforge.link_marks (tenant_id) values (link_references.tenant_id);
    end if;
    return linked;
end
$$;

comment on function public.link_references(text, text) is
'Makes a hyperlink of every reference whose target is there by now: by path (external_id), URL or '
'title (in upper or lower case). The others wait. Returns how many links are new.';

revoke all on function public.link_references(text, text) from public;
grant execute on function public.link_references(text, text) to contextforge_api;
