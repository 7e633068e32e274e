create or replace function contextforge.is_unfiltered(kept contextforge.search_filter)
returns boolean
language sql
immutable
parallel safe
return kept is not distinct from row(
    null, null, null, null, null, null, kept.acl_groups
)::contextforge.search_filter;

comment on function contextforge.is_unfiltered(contextforge.search_filter) is
'Whether a search keeps every node of its tenants, but for those with an acl.';

revoke all on function contextforge.is_unfiltered(contextforge.search_filter) from public;
grant execute on function contextforge.is_unfiltered(contextforge.search_filter)
to contextforge_api, contextforge_analyst;
