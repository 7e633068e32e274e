create or replace function public.list_unstaged_nodes(
    tenant_id text,
    embedder_version text,
    max_rows integer default 512,
    after_node_id integer default 0
)
returns table (
    node_id integer,
    title text,
    summary text,
    header text,
    content text,
    content_hash bytea
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[list_unstaged_nodes.tenant_id]);
    return query
    select n.node_id, n.title, n.summary, n.header, n.content, n.content_hash
    from public.knowledge_nodes as n
    where n.tenant_id = list_unstaged_nodes.tenant_id
        and n.node_id > after_node_id
        and n.searchable_text is not null
        and (
            n.embedding is null
            or n.embedder_version is distinct from list_unstaged_nodes.embedder_version
        )
        and not exists (
            select
            from contextforge.next_embeddings as x
            where x.tenant_id = list_unstaged_nodes.tenant_id
                and x.node_id = n.node_id
                and x.embedder_version = list_unstaged_nodes.embedder_version
                and x.content_hash = n.content_hash
        )
    order by n.node_id
    limit max_rows;
end
$$;

comment on function public.list_unstaged_nodes(text, text, integer, integer) is
'Searchable nodes of a tenant whose present text has no embedding of this embedder, neither stored '
'nor staged, by node_id from the first after after_node_id.';

revoke all on function public.list_unstaged_nodes(text, text, integer, integer) from public;
grant execute on function public.list_unstaged_nodes(text, text, integer, integer)
to contextforge_api;
