create or replace function public.store_ranks(
    tenant_id text,
    node_ids integer[],
    ranks double precision[],
    links integer,
    seen_marks bigint[]
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    stored integer;
begin
    perform contextforge.require_tenants(array[store_ranks.tenant_id]);
    if cardinality(node_ids) is distinct from cardinality(ranks) then
        raise exception 'there are % nodes and % ranks', cardinality(node_ids), cardinality(ranks)
            using errcode = 'invalid_parameter_value';
    end if;
    -- Locked before their ranks are touched, and in the order of delete_nodes, which then takes
    -- the ranks along: neither waits for the other for ever.
    perform from public.knowledge_nodes as n
    where n.tenant_id = store_ranks.tenant_id and n.node_id = any(store_ranks.node_ids)
    order by n.external_id, n.node_id
    for key share;

    delete from public.node_ranks as r where r.tenant_id = store_ranks.tenant_id;
    insert into public.node_ranks (tenant_id, node_id, rank)
    select n.tenant_id, n.node_id, given.rank
    from unnest(store_ranks.node_ids, store_ranks.ranks) as given (node_id, rank)
    join public.knowledge_nodes as n
        on n.tenant_id = store_ranks.tenant_id and n.node_id = given.node_id;
    get diagnostics stored = row_count;

    insert into contextforge.rank_states (tenant_id, articles, links, linked_nodes, largest_rank)
    select
        store_ranks.tenant_id,
        (
            select count(*) from public.knowledge_nodes as n
            where n.tenant_id = store_ranks.tenant_id and n.parent_id is null
        ),
        store_ranks.links, stored,
        coalesce((select max(given.rank) from unnest(store_ranks.ranks) as given (rank)), 0)
    on conflict (tenant_id) do update set
        computed_at = excluded.computed_at, articles = excluded.articles, links = excluded.links,
        linked_nodes = excluded.linked_nodes, largest_rank = excluded.largest_rank;
    delete from contextforge.link_marks as m
    where m.tenant_id = store_ranks.tenant_id and m.mark_id = any(seen_marks);
    return stored;
end
$$;

comment on function public.store_ranks(
    text, integer[], double precision[], integer, bigint[]
) is
'The ranks of a tenant''s linked nodes, in place of those it had, with how many links they come '
'from; takes away the marks of changed links that were seen before the links were read. A node '
'that is gone by now is left out. Returns how many ranks are stored.';

revoke all on function public.store_ranks(
    text, integer[], double precision[], integer, bigint[]
) from public;
grant execute on function public.store_ranks(
    text, integer[], double precision[], integer, bigint[]
) to contextforge_api;
