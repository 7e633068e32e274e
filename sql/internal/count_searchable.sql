create or replace function contextforge.count_searchable(
    tenant_ids text[], kept contextforge.search_filter
)
returns bigint
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
begin
    return (
        select count(*)
        from contextforge.search_nodes as s
        where s.tenant_id = any(tenant_ids)
            and contextforge.passes_filter(
                kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang, s.space_id,
                s.acl
            )
    );
end
$$;

comment on function contextforge.count_searchable(text[], contextforge.search_filter) is
'How many searchable nodes of the tenants pass the filters.';

revoke all on function contextforge.count_searchable(text[], contextforge.search_filter)
from public;
grant execute on function contextforge.count_searchable(text[], contextforge.search_filter)
to contextforge_api, contextforge_analyst;
