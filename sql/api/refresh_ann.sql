create or replace function public.refresh_ann(
    tenant_id text, max_rows integer default 10000
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    setting record;
    size bigint;
    moved integer;
begin
    perform contextforge.require_tenants(array[refresh_ann.tenant_id]);
    select x.embedding_dim, x.exact_limit into setting from contextforge.search_settings() as x;
    select sum(s.documents) into size
    from contextforge.segments as s
    where s.tenant_id = refresh_ann.tenant_id;
    if coalesce(size, 0) <= setting.exact_limit then
        return 0;
    end if;

    with tail as (
        select s.node_id
        from contextforge.search_nodes as s
        where s.tenant_id = refresh_ann.tenant_id and not s.in_ann and s.embedding is not null
        order by s.node_id
        limit max_rows
        for update skip locked
    ),

    marked as (
        update contextforge.search_nodes as s
        set in_ann = true
        where s.tenant_id = refresh_ann.tenant_id
            and s.node_id = any(array(select t.node_id from tail as t))
        returning s.*
    )

    insert into contextforge.ann_nodes (
        tenant_id, node_id, article_id, node_type, dataset_name, lang, space_id, acl, embedding
    )
    select
        m.tenant_id, m.node_id, m.article_id, m.node_type, m.dataset_name, m.lang, m.space_id,
        m.acl, contextforge.pad_embedding(m.embedding::vector, setting.embedding_dim)::halfvec
    from marked as m;
    get diagnostics moved = row_count;
    return moved;
end
$$;

comment on function public.refresh_ann(text, integer) is
'Moves up to max_rows vectors of a tenant under the ANN index, if the tenant is too large for the '
'exact path. Returns how many; searches go on meanwhile.';

revoke all on function public.refresh_ann(text, integer) from public;
grant execute on function public.refresh_ann(text, integer) to contextforge_api;
