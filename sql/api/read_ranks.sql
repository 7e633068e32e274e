create or replace function public.read_ranks(node_ids integer[], tenant_ids text[])
returns table (
    tenant_id text, node_id integer, rank_share double precision, left_out text
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    -- Below it, links are too few to tell which articles matter.
    least_links_per_article constant double precision := 0.5;
begin
    perform contextforge.require_tenants(tenant_ids);
    return query
    with states as (
        select
            t.tenant_id, s.largest_rank,
            case
                when s.tenant_id is null then 'unranked'
                when s.links < least_links_per_article * s.articles or s.largest_rank = 0
                    then 'sparse'
            end as left_out
        from (select distinct unnest(tenant_ids) as tenant_id) as t
        left join contextforge.rank_states as s on s.tenant_id = t.tenant_id
    )

    select s.tenant_id, null::integer, null::double precision, s.left_out
    from states as s
    where s.left_out is not null
    union all
    select n.tenant_id, n.node_id, coalesce(own.rank, parent.rank, 0) / s.largest_rank, null
    from states as s
    join public.knowledge_nodes as n on n.tenant_id = s.tenant_id and n.node_id = any(node_ids)
    left join public.node_ranks as own on own.tenant_id = n.tenant_id and own.node_id = n.node_id
    left join public.node_ranks as parent
        on parent.tenant_id = n.tenant_id and parent.node_id = n.parent_id
    where s.left_out is null
    order by 1, 2;
end
$$;

comment on function public.read_ranks(integer[], text[]) is
'PageRank of each node divided by its tenant''s largest; a section without links of its own has '
'its article''s, a node without links 0. A tenant that is left out has one row without a node: '
'unranked (never computed) or sparse (fewer than 0.5 links an article).';

revoke all on function public.read_ranks(integer[], text[]) from public;
grant execute on function public.read_ranks(integer[], text[])
to contextforge_api, contextforge_analyst;
