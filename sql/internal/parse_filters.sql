create or replace function contextforge.parse_filters(
    tenant_ids text[], node_types text[], dataset_name text, filters jsonb
)
returns contextforge.search_filter
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
    wrong text;
begin
    kept.node_types := parse_filters.node_types;
    kept.dataset_name := parse_filters.dataset_name;
    kept.acl_groups := '{}';
    if filters is null or filters = 'null' then
        return kept;
    end if;

    if jsonb_typeof(filters) <> 'object' then
        wrong := 'filters is no json object';
    else
        select format('filter "%s" is unknown or has the wrong type', f.key) into wrong
        from jsonb_each(filters) as f
        where jsonb_typeof(f.value) <> all(
            case f.key
                when 'lang' then array['string']
                when 'space_id' then array['string']
                when 'doc' then array['string', 'array']
                when 'acl' then array['array']
                when 'metadata' then array['object']
                when 'without_metadata' then array['object']
                else '{}'
            end
        )
        order by f.key
        limit 1;
    end if;
    if wrong is not null then
        raise exception '%', wrong
            using errcode = 'invalid_parameter_value',
                  hint = 'Filters are lang and space_id (text), doc (external_id or an array of '
                         'them), acl (array of groups), metadata and without_metadata (objects, by '
                         'equality).';
    end if;

    kept.lang := filters ->> 'lang';
    kept.space_id := filters ->> 'space_id';
    kept.acl_groups := array(
        select jsonb_array_elements_text(coalesce(filters -> 'acl', '[]'))
    );
    if filters ? 'doc' then
        kept.article_ids := array(
            select n.node_id
            from public.knowledge_nodes as n
            where n.tenant_id = any(tenant_ids)
                and (kept.dataset_name is null or n.dataset_name = kept.dataset_name)
                and n.external_id = any(array(
                    select jsonb_array_elements_text(
                        case jsonb_typeof(filters -> 'doc')
                            when 'array' then filters -> 'doc'
                            else jsonb_build_array(filters -> 'doc')
                        end
                    )
                ))
        );
    end if;
    if filters ?| array['metadata', 'without_metadata'] then
        kept.node_ids := array(
            select n.node_id
            from public.knowledge_nodes as n
            where n.tenant_id = any(tenant_ids)
                and (kept.node_types is null or n.node_type = any(kept.node_types))
                and (kept.dataset_name is null or n.dataset_name = kept.dataset_name)
                and n.metadata @> coalesce(filters -> 'metadata', '{}')
                -- Everything contains an empty object: without nothing means all.
                and not coalesce(
                    n.metadata @> nullif(filters -> 'without_metadata', '{}'), false
                )
        );
    end if;
    return kept;
end
$$;

comment on function contextforge.parse_filters(text[], text[], text, jsonb) is
'The filters of a search, checked, with doc and metadata resolved to ids. Without acl groups only '
'nodes without an acl are kept.';

revoke all on function contextforge.parse_filters(text[], text[], text, jsonb) from public;
grant execute on function contextforge.parse_filters(text[], text[], text, jsonb)
to contextforge_api, contextforge_analyst;
