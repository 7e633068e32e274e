create or replace function contextforge.vector_scores(
    tenant_ids text[], node_ids integer[], query_embedding vector
)
returns table (node_id integer, score double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    nearby constant halfvec := l2_normalize(query_embedding)::halfvec;
begin
    return query
    select s.node_id, 1 - (s.embedding <=> nearby)
    from contextforge.search_nodes as s
    where s.tenant_id = any(tenant_ids) and s.node_id = any(node_ids);
end
$$;

comment on function contextforge.vector_scores(text[], integer[], vector) is
'The cosine of each of a few nodes; null for a node without an embedding.';

revoke all on function contextforge.vector_scores(text[], integer[], vector) from public;
grant execute on function contextforge.vector_scores(text[], integer[], vector)
to contextforge_api, contextforge_analyst;
