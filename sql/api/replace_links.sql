create or replace function public.replace_links(
    tenant_id text,
    sources text[],
    links jsonb,
    replaced_type text,
    dataset_name text default 'default'
)
returns table (source_id integer, target_id integer, link_type text, action text)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[replace_links.tenant_id]);
    return query
    select l.source_id, l.target_id, l.link_type, l.action
    from public.upsert_links(
        replace_links.tenant_id, links, replace_links.dataset_name
    ) as l;

    with stated as (
        select l.source_id, l.target_id, l.link_type
        from contextforge.resolve_links(
            replace_links.tenant_id, links, replace_links.dataset_name
        ) as l
    ),

    dropped as (
        delete from public.node_links as k
        where k.tenant_id = replace_links.tenant_id
            and k.link_type = replaced_type
            and k.source_id = any(array(
                select n.node_id
                from public.knowledge_nodes as n
                where n.tenant_id = replace_links.tenant_id
                    and n.dataset_name = replace_links.dataset_name
                    and n.external_id = any(sources)
            ))
            and not exists (
                select from stated as s
                where s.source_id = k.source_id
                    and s.target_id = k.target_id
                    and s.link_type = k.link_type
            )
        returning k.source_id
    )

    insert into contextforge.link_marks (tenant_id)
    select replace_links.tenant_id where exists (select from dropped);
end
$$;

comment on function public.replace_links(text, text[], jsonb, text, text) is
'The links of one type that nodes have, in place of those they had before: stores links as '
'upsert_links does, then drops the links of replaced_type of these sources (external_id) that are '
'not among them. Links of other types and sources stay.';

revoke all on function public.replace_links(text, text[], jsonb, text, text) from public;
grant execute on function public.replace_links(text, text[], jsonb, text, text)
to contextforge_api;
