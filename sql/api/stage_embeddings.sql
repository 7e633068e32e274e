create or replace function public.stage_embeddings(
    tenant_id text,
    node_ids integer[],
    content_hashes bytea[],
    embeddings vector[],
    embedder_version text
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    padded_dim constant integer := contextforge.embedding_dim();
    earlier record;
    bad record;
    staged integer;
begin
    perform contextforge.require_tenants(array[stage_embeddings.tenant_id]);
    if coalesce(embedder_version, '') = ''
        or cardinality(node_ids) is distinct from cardinality(embeddings)
        or cardinality(node_ids) is distinct from cardinality(content_hashes)
    then
        raise exception 'an embedder_version, and as many embeddings and hashes as nodes are needed'
            using errcode = 'invalid_parameter_value';
    end if;

    -- One row speaks for all: this function lets in no second version and no second dimension.
    select x.embedder_version, vector_dims(x.embedding) as dim into earlier
    from contextforge.next_embeddings as x
    where x.tenant_id = stage_embeddings.tenant_id
    order by x.node_id
    limit 1;
    if earlier.embedder_version <> stage_embeddings.embedder_version then
        raise exception 'tenant "%" is on its way to "%"',
            stage_embeddings.tenant_id, earlier.embedder_version
            using errcode = 'object_not_in_prerequisite_state',
                  hint = format(
                      'Finish that, or drop it with: contextforge reembed --tenant %s --abort',
                      stage_embeddings.tenant_id
                  );
    end if;

    with given as (
        select
            g.node_id, g.embedding, g.place,
            coalesce(
                earlier.dim, first_value(vector_dims(g.embedding)) over (order by g.place)
            ) as dim
        from unnest(node_ids, embeddings) with ordinality as g (node_id, embedding, place)
    )

    select
        g.node_id,
        case
            when g.node_id is null or g.embedding is null then 'is null or has no embedding'
            when vector_dims(g.embedding) > padded_dim then format(
                'has an embedding of %s dimensions where this database holds at most %s',
                vector_dims(g.embedding), padded_dim
            )
            when vector_dims(g.embedding) <> g.dim then format(
                'has an embedding of %s dimensions where the others have %s',
                vector_dims(g.embedding), g.dim
            )
            else 'has an all-zero embedding, which has no direction'
        end as problem
    into bad
    from given as g
    where (vector_dims(g.embedding) = least(g.dim, padded_dim)) is not true
        or g.node_id is null
        or vector_norm(g.embedding) = 0
    order by g.place
    limit 1;
    if bad.problem is not null then
        raise exception 'node % %', bad.node_id, bad.problem
            using errcode = 'invalid_parameter_value', hint = 'Nothing of this batch was stored.';
    end if;

    -- Locked in the order in which writers lock them; a node deleted meanwhile is left out.
    with present as (
        select n.node_id
        from public.knowledge_nodes as n
        where n.tenant_id = stage_embeddings.tenant_id and n.node_id = any(node_ids)
        order by n.external_id, n.node_id
        for key share
    )

    insert into contextforge.next_embeddings (
        tenant_id, node_id, embedder_version, content_hash, embedding
    )
    select
        stage_embeddings.tenant_id, p.node_id, stage_embeddings.embedder_version, g.content_hash,
        g.embedding
    from present as p
    join unnest(node_ids, content_hashes, embeddings) as g (node_id, content_hash, embedding)
        on g.node_id = p.node_id
    order by p.node_id
    on conflict (tenant_id, node_id) do update
        set embedder_version = excluded.embedder_version, content_hash = excluded.content_hash,
            embedding = excluded.embedding;
    get diagnostics staged = row_count;
    return staged;
end
$$;

comment on function public.stage_embeddings(text, integer[], bytea[], vector[], text) is
'Keeps embeddings of a tenant''s next embedder beside those in use. content_hashes are of the '
'texts that were embedded, as list_unstaged_nodes gave them. Returns how many were kept.';

revoke all on function public.stage_embeddings(text, integer[], bytea[], vector[], text)
from public;
grant execute on function public.stage_embeddings(text, integer[], bytea[], vector[], text)
to contextforge_api;
