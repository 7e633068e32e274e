create or replace function public.similar_nodes(
    of_node_id integer,
    tenant_ids text[],
    node_types text[] default null,
    top_k integer default 20,
    dataset_name text default null,
    filters jsonb default null
)
returns table (
    node_id integer,
    bm25_score double precision,
    vector_score double precision,
    combined_score double precision
)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    kept contextforge.search_filter;
    seed record;
begin
    perform contextforge.require_tenants(tenant_ids);
    kept := contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters);
    select
        concat_ws(' ', n.title, n.header, n.summary) as words,
        subvector(n.embedding, 1, coalesce(p.embedding_dim, vector_dims(n.embedding))) as embedding
    into seed
    from public.knowledge_nodes as n
    join contextforge.tenant_profiles as p on p.tenant_id = n.tenant_id
    where n.tenant_id = any(tenant_ids) and n.node_id = of_node_id
        and (cardinality(n.acl) = 0 or n.acl && kept.acl_groups);
    if not found then
        raise exception 'these tenants have no node %', of_node_id
            using errcode = 'no_data_found';
    end if;
    if seed.embedding is null and seed.words = '' then
        raise exception 'node % has neither an embedding nor a title to look alike by', of_node_id
            using errcode = 'object_not_in_prerequisite_state';
    end if;

    perform contextforge.check_search(
        seed.words, seed.embedding, tenant_ids, top_k, 0.4, 0.6, 'rrf', 60, null
    );

    -- One more is asked for, because the node itself comes first.
    return query
    select r.node_id, r.bm25_score, r.vector_score, r.combined_score
    from contextforge.run_search(
        seed.words, seed.embedding, tenant_ids, top_k + 1, 0.4, 0.6, kept, 'rrf', 60, null
    ) as r
    where r.node_id <> of_node_id
    order by r.combined_score desc, r.node_id
    limit top_k;
end
$$;

comment on function public.similar_nodes(integer, text[], text[], integer, text, jsonb) is
'More like this: hybrid_search_nodes by the node''s own title and stored embedding, without the '
'node itself. Scores as there.';

revoke all on function public.similar_nodes(integer, text[], text[], integer, text, jsonb)
from public;
grant execute on function public.similar_nodes(integer, text[], text[], integer, text, jsonb)
to contextforge_api, contextforge_analyst;
