create or replace function contextforge.vector_leg(
    tenant_ids text[],
    query_embedding vector,
    kept contextforge.search_filter,
    depth integer,
    path text
)
returns table (node_id integer, score double precision)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    nearby constant halfvec := l2_normalize(query_embedding)::halfvec;
    near integer[];
begin
    if path <> 'exact' then
        near := contextforge.ann_candidates(
            tenant_ids,
            contextforge.pad_embedding(nearby::vector, contextforge.embedding_dim())::halfvec,
            kept, depth
        );
    end if;

    -- A short answer of the index may be its own failing: then the scan answers instead.
    if path = 'exact' or cardinality(near) < depth then
        return query
        select c.node_id, 1 - c.distance
        from (
            select s.tenant_id, s.node_id, s.embedding <=> nearby as distance
            from contextforge.search_nodes as s
            where s.tenant_id = any(tenant_ids)
                and s.embedding is not null
                and contextforge.passes_filter(
                    kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang,
                    s.space_id, s.acl
                )
            order by distance, s.tenant_id, s.node_id
            limit depth
        ) as c
        order by c.distance, c.tenant_id, c.node_id;
        return;
    end if;

    return query
    with candidates as (
        select s.tenant_id, s.node_id, s.embedding <=> nearby as distance
        from contextforge.search_nodes as s
        where s.tenant_id = any(tenant_ids) and s.node_id = any(near)
        union
        select s.tenant_id, s.node_id, s.embedding <=> nearby
        from contextforge.search_nodes as s
        where s.tenant_id = any(tenant_ids)
            and not s.in_ann
            and s.embedding is not null
            and contextforge.passes_filter(
                kept, s.node_id, s.article_id, s.node_type, s.dataset_name, s.lang, s.space_id,
                s.acl
            )
    )

    select c.node_id, 1 - c.distance
    from candidates as c
    order by c.distance, c.tenant_id, c.node_id
    limit depth;
end
$$;

comment on function contextforge.vector_leg(
    text[], vector, contextforge.search_filter, integer, text
) is
'The best nodes by cosine over the stored half-precision vectors: every row of the filters '
'(exact), or what the ANN index found and the rows it does not hold yet.';

revoke all on function contextforge.vector_leg(
    text[], vector, contextforge.search_filter, integer, text
) from public;
grant execute on function contextforge.vector_leg(
    text[], vector, contextforge.search_filter, integer, text
) to contextforge_api, contextforge_analyst;
