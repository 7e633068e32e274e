create or replace function contextforge.compare_embedders(
    tenant_id text,
    query_text text,
    old_embedding vector,
    new_embedding vector,
    top_k integer
)
returns table (old_ids integer[], new_ids integer[])
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    depth constant integer := greatest(100, 5 * top_k);
    tenants constant text[] := array[compare_embedders.tenant_id];
    nearby constant halfvec := l2_normalize(new_embedding)::halfvec;
    keyword_ids integer[] := '{}';
    old_nearest integer[];
    new_nearest integer[];
begin
    if query_text is not null then
        keyword_ids := array(
            select b.node_id from public.bm25_search_nodes(query_text, tenants, null, depth) as b
        );
    end if;
    old_nearest := array(
        select v.node_id
        from public.vector_search_nodes(old_embedding, tenants, null, depth) as v
    );
    -- What is not staged has the next embedder's vector already, or was written a moment ago.
    new_nearest := array(
        select c.node_id
        from (
            select s.node_id, coalesce(x.embedding::halfvec, s.embedding) as embedding
            from contextforge.search_nodes as s
            left join contextforge.next_embeddings as x
                on x.tenant_id = compare_embedders.tenant_id and x.node_id = s.node_id
            where s.tenant_id = compare_embedders.tenant_id and s.acl is null
        ) as c
        where vector_dims(c.embedding) = vector_dims(nearby)
        order by
            case when vector_dims(c.embedding) = vector_dims(nearby)
                then c.embedding <=> nearby end,
            c.node_id
        limit depth
    );
    return query
    select
        array(
            select f.node_id
            from contextforge.fuse_ranks(keyword_ids, old_nearest, 0.4, 0.6, 60) as f
            order by f.score desc, f.node_id
            limit top_k
        ),
        array(
            select f.node_id
            from contextforge.fuse_ranks(keyword_ids, new_nearest, 0.4, 0.6, 60) as f
            order by f.score desc, f.node_id
            limit top_k
        );
end
$$;

comment on function contextforge.compare_embedders(text, text, vector, vector, integer) is
'What a question finds now and what it would find by the staged embeddings, best first: both legs '
'fused by ranks at the weights 0.4 and 0.6; query_text null leaves the keyword leg out.';

revoke all on function contextforge.compare_embedders(text, text, vector, vector, integer)
from public;
grant execute on function contextforge.compare_embedders(text, text, vector, vector, integer)
to contextforge_api;
