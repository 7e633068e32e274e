create or replace function contextforge.ann_candidates(
    tenant_ids text[],
    query_embedding halfvec,
    kept contextforge.search_filter,
    depth integer
)
returns integer[]
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
declare
    setting record;
begin
    select x.ann_method, x.ann_operator, x.ann_search_effort into setting
    from contextforge.search_settings() as x;
    return contextforge.ann_scan(
        tenant_ids, query_embedding, kept, depth,
        setting.ann_method, setting.ann_operator, setting.ann_search_effort
    );
end
$$;

comment on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) is
'About the nearest nodes by the ANN index in use under the filters, in no particular order.';

revoke all on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) from public;
grant execute on function contextforge.ann_candidates(
    text[], halfvec, contextforge.search_filter, integer
) to contextforge_api, contextforge_analyst;
