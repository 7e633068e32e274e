create or replace function contextforge.passes_filter(
    kept contextforge.search_filter,
    node_id integer,
    article_id integer,
    node_type text,
    dataset_name text,
    lang text,
    space_id text,
    acl text[]
)
returns boolean
language sql
immutable
parallel safe
return (
    (kept.node_types is null or node_type = any(kept.node_types))
    and (kept.dataset_name is null or dataset_name = kept.dataset_name)
    and (kept.lang is null or lang = kept.lang)
    and (kept.space_id is null or space_id = kept.space_id)
    and (
        kept.article_ids is null
        or article_id = any(kept.article_ids) or node_id = any(kept.article_ids)
    )
    and (kept.node_ids is null or node_id = any(kept.node_ids))
    and (acl is null or acl && kept.acl_groups)
);

comment on function contextforge.passes_filter(
    contextforge.search_filter, integer, integer, text, text, text, text, text[]
) is
'Whether a search row is among those a search keeps. The planner inlines it and drops the parts '
'that are null, so both legs filter inside their scans.';

revoke all on function contextforge.passes_filter(
    contextforge.search_filter, integer, integer, text, text, text, text, text[]
) from public;
grant execute on function contextforge.passes_filter(
    contextforge.search_filter, integer, integer, text, text, text, text, text[]
) to contextforge_api, contextforge_analyst;
