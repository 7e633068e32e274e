create or replace function public.replace_references(
    tenant_id text, "references" jsonb, dataset_name text default 'default'
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    stated integer;
begin
    perform contextforge.require_tenants(array[replace_references.tenant_id]);

    with named as (
        select r.source, r.kind, r.target
        from jsonb_to_recordset("references") as r (source text, kind text, target text)
    ),

    sources as (
        select n.node_id, n.external_id
        from public.knowledge_nodes as n
        where n.tenant_id = replace_references.tenant_id
            and n.dataset_name = replace_references.dataset_name
            and n.external_id = any(array(select named.source from named))
    ),

    dropped as (
        delete from contextforge.node_references as r
        where r.tenant_id = replace_references.tenant_id
            and r.source_id = any(array(select s.node_id from sources as s))
            and not exists (
                select from named join sources as s on s.external_id = named.source
                where s.node_id = r.source_id and named.kind = r.kind and named.target = r.target
            )
        returning r.source_id
    ),

    -- Which link came of which reference is not kept: a link stays while one still leads there.
    unlinked as (
        delete from public.node_links as l
        using public.knowledge_nodes as target
        where l.tenant_id = replace_references.tenant_id
            and l.link_type = 'hyperlink'
            and l.source_id = any(array(select d.source_id from dropped as d))
            and target.tenant_id = replace_references.tenant_id
            and target.node_id = l.target_id
            and not exists (
                select from named join sources as s on s.external_id = named.source
                where s.node_id = l.source_id
                    and case named.kind
                        when 'path' then named.target = target.external_id
                        when 'url' then named.target = target.url
                        when 'title' then contextforge.fold_title(named.target)
                            = contextforge.fold_title(target.title)
                    end
            )
        returning l.source_id
    ),

    marked as (
        insert into contextforge.link_marks (tenant_id)
        select replace_references.tenant_id where exists (select from unlinked)
    )

    insert into contextforge.node_references (tenant_id, source_id, kind, target)
    select distinct replace_references.tenant_id, s.node_id, named.kind, named.target
    from named
    join sources as s on s.external_id = named.source
    where named.kind is not null
    on conflict do nothing;
    get diagnostics stated = row_count;
    return stated;
end
$$;

comment on function public.replace_references(text, jsonb, text) is
'What documents refer to, in place of what they referred to before. Each json object has source '
'(external_id), kind (path, url or title) and target; a source without a kind refers to nothing. '
'link_references makes links of them. Returns how many are new.';

revoke all on function public.replace_references(text, jsonb, text) from public;
grant execute on function public.replace_references(text, jsonb, text) to contextforge_api;
