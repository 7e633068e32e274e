create or replace function contextforge.ann_nearest(
    tenant_id text,
    query_embedding vector,
    top_k integer,
    method text,
    operator text,
    effort integer
)
returns integer[]
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    nearby constant halfvec := contextforge.pad_embedding(
        l2_normalize(query_embedding), contextforge.embedding_dim()
    )::halfvec;
    kept contextforge.search_filter;
    near integer[];
begin
    kept.acl_groups := '{}';
    if method <> 'exact' then
        -- As deep as a search goes for so many.
        near := contextforge.ann_scan(
            array[ann_nearest.tenant_id], nearby, kept, greatest(100, 5 * top_k), method, operator,
            effort
        );
    end if;
    return array(
        select a.node_id
        from contextforge.ann_nodes as a
        where a.tenant_id = ann_nearest.tenant_id
            and (near is null or a.node_id = any(near))
            and a.acl is null
        -- A sum is no operator that an index could serve.
        order by (a.embedding <=> nearby) + 0, a.node_id
        limit top_k
    );
end
$$;

comment on function contextforge.ann_nearest(text, vector, integer, text, text, integer) is
'For the owner: the nearest indexed nodes of a tenant, best first, by an ANN index of this kind, '
'operator and effort, or by a scan of all (exact). Two indexes are compared by it.';

revoke all on function contextforge.ann_nearest(text, vector, integer, text, text, integer)
from public;
