create or replace function public.switch_embedder(tenant_id text, embedder_version text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    padded_dim constant integer := contextforge.embedding_dim();
    old_dim integer;
    new_dim integer;
    staged integer;
    nodes integer;
begin
    perform contextforge.require_tenants(array[switch_embedder.tenant_id]);
    -- Alone: a writer that read the old profile must not write after it has changed.
    perform contextforge.lock_writing(switch_embedder.tenant_id, 3);
    if exists (
        select
        from public.list_unstaged_nodes(
            switch_embedder.tenant_id, switch_embedder.embedder_version, 1
        )
    ) then
        raise exception 'nodes of tenant "%" have no embedding of "%" yet',
            switch_embedder.tenant_id, switch_embedder.embedder_version
            using errcode = 'object_not_in_prerequisite_state',
                  hint = 'Stage them first: contextforge reembed does so, and goes on where it '
                         'was interrupted.';
    end if;

    -- What was staged for another embedder, or for a text that is gone, counts for nothing.
    delete from contextforge.next_embeddings as x
    where x.tenant_id = switch_embedder.tenant_id
        and (
            x.embedder_version <> switch_embedder.embedder_version
            or not exists (
                select
                from public.knowledge_nodes as n
                where n.tenant_id = switch_embedder.tenant_id
                    and n.node_id = x.node_id
                    and n.content_hash = x.content_hash
                    and n.searchable_text is not null
            )
        );
    select p.embedding_dim into old_dim
    from contextforge.tenant_profiles as p
    where p.tenant_id = switch_embedder.tenant_id;
    select count(*) into nodes
    from contextforge.search_nodes as s
    where s.tenant_id = switch_embedder.tenant_id;
    select count(*), max(vector_dims(x.embedding)) into staged, new_dim
    from contextforge.next_embeddings as x
    where x.tenant_id = switch_embedder.tenant_id;
    if staged between 1 and nodes - 1 and new_dim <> old_dim then
        raise exception 'tenant "%" has embeddings of "%" with % and with % dimensions',
            switch_embedder.tenant_id, switch_embedder.embedder_version, old_dim, new_dim
            using errcode = 'object_not_in_prerequisite_state',
                  hint = 'An embedder_version must name one model with one dimension.';
    end if;

    update public.knowledge_nodes as n
    set embedding = contextforge.pad_embedding(x.embedding, padded_dim),
        embedder_version = switch_embedder.embedder_version
    from contextforge.next_embeddings as x
    where n.tenant_id = switch_embedder.tenant_id
        and x.tenant_id = switch_embedder.tenant_id
        and x.node_id = n.node_id;
    update contextforge.search_nodes as s
    set embedding = l2_normalize(x.embedding)::halfvec, in_ann = false
    from contextforge.next_embeddings as x
    where s.tenant_id = switch_embedder.tenant_id
        and x.tenant_id = switch_embedder.tenant_id
        and x.node_id = s.node_id;
    if staged > 0 then
        update contextforge.search_nodes as s
        set in_ann = false
        where s.tenant_id = switch_embedder.tenant_id and s.in_ann;
        -- After the rows above are locked: a refresh that held them has brought its copies in.
        delete from contextforge.ann_nodes as x where x.tenant_id = switch_embedder.tenant_id;
    end if;

    -- With nothing to search, the next write may choose its embedder.
    update contextforge.tenant_profiles as p
    set embedder_version = case when nodes > 0 then switch_embedder.embedder_version end,
        embedding_dim = case when nodes > 0 then coalesce(new_dim, old_dim) end
    where p.tenant_id = switch_embedder.tenant_id;
    perform public.drop_staged_embeddings(switch_embedder.tenant_id);
    return staged;
end
$$;

comment on function public.switch_embedder(text, text) is
'Makes the staged embeddings those that are searched, in one transaction, and the embedder the '
'tenant''s. Writers wait meanwhile, searches do not. Returns how many nodes have a new embedding.';

revoke all on function public.switch_embedder(text, text) from public;
grant execute on function public.switch_embedder(text, text) to contextforge_api;
