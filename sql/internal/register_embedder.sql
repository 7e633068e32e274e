-- On a new database there is nothing to drop, which is no news.
set local client_min_messages = warning;
drop function if exists contextforge.register_embedder(text, text, vector[]);

create or replace function contextforge.register_embedder(
    tenant_id text, embedder_version text, embeddings vector[], allow_mixed boolean
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    padded_dim constant integer := contextforge.embedding_dim();
    -- Almost always the first one tells; unnesting copies them all.
    given_dim constant integer := vector_dims(
        coalesce(
            embeddings[1], (select e from unnest(embeddings) as e where e is not null limit 1)
        )
    );
    profile contextforge.tenant_profiles;
begin
    select p.* into profile
    from contextforge.tenant_profiles as p
    where p.tenant_id = register_embedder.tenant_id;

    if given_dim is null or embedder_version is null then
        return coalesce(profile.embedding_dim, padded_dim);
    end if;
    if profile.embedder_version is null and given_dim <= padded_dim then
        update contextforge.tenant_profiles as p
        set embedder_version = register_embedder.embedder_version, embedding_dim = given_dim
        where p.tenant_id = register_embedder.tenant_id
            and p.embedder_version is null
            and coalesce(p.embedding_dim, given_dim) = given_dim
            and not exists (
                select from contextforge.search_nodes as s
                where s.tenant_id = register_embedder.tenant_id and s.embedding is not null
                    and given_dim <> padded_dim
            );
        select p.* into profile
        from contextforge.tenant_profiles as p
        where p.tenant_id = register_embedder.tenant_id;
    end if;
    if profile.embedder_version <> register_embedder.embedder_version
        and not (allow_mixed and given_dim = profile.embedding_dim)
    then
        raise exception 'tenant "%" holds embeddings of "%", not of "%"',
            tenant_id, profile.embedder_version, register_embedder.embedder_version
            using errcode = 'object_not_in_prerequisite_state',
                  hint = case
                      when allow_mixed then format(
                          'Only embeddings of %s dimensions can be mixed with them, and these have '
                          '%s. ', profile.embedding_dim, given_dim
                      )
                      else 'Cosines of two embedders mean nothing together. '
                  end || format(
                      'Embed with the registered one, use another tenant, or change this one''s '
                      'model with: contextforge reembed --tenant %s --model MODEL', tenant_id
                  );
    end if;
    return coalesce(profile.embedding_dim, padded_dim);
end
$$;

comment on function contextforge.register_embedder(text, text, vector[], boolean) is
'The dimension a tenant''s embeddings must have. The first write that names an embedder registers '
'it with its dimension; another embedder later is refused, or with allow_mixed accepted if it has '
'the same dimension.';

revoke all on function contextforge.register_embedder(text, text, vector[], boolean) from public;
grant execute on function contextforge.register_embedder(text, text, vector[], boolean)
to contextforge_api;
