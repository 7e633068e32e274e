create or replace function contextforge.check_query_embedding(
    tenant_ids text[], query_embedding vector
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
declare
    padded_dim constant integer := contextforge.embedding_dim();
    other record;
begin
    if query_embedding is null then
        return;
    end if;
    select p.tenant_id, coalesce(p.embedding_dim, padded_dim) as dim into other
    from contextforge.tenant_profiles as p
    where p.tenant_id = any(tenant_ids)
        and coalesce(p.embedding_dim, padded_dim) <> vector_dims(query_embedding)
    order by p.tenant_id
    limit 1;
    if other.tenant_id is not null then
        raise exception 'query_embedding has % dimensions where tenant "%" has %',
            vector_dims(query_embedding), other.tenant_id, other.dim
            using errcode = 'invalid_parameter_value',
                  hint = 'Embed the query with the model the tenant was ingested with.';
    end if;
    if vector_norm(query_embedding) = 0 then
        raise exception 'query_embedding is all zeros, which has no direction'
            using errcode = 'invalid_parameter_value',
                  hint = 'Pass null to search by keywords only.';
    end if;
end
$$;

comment on function contextforge.check_query_embedding(text[], vector) is
'Raises unless the query embedding has a direction and the dimension of every named tenant.';

revoke all on function contextforge.check_query_embedding(text[], vector) from public;
grant execute on function contextforge.check_query_embedding(text[], vector)
to contextforge_api, contextforge_analyst;
