create or replace function public.drop_staged_embeddings(tenant_id text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    dropped integer;
begin
    perform contextforge.require_tenants(array[drop_staged_embeddings.tenant_id]);
    delete from contextforge.next_embeddings as x
    where x.tenant_id = drop_staged_embeddings.tenant_id;
    get diagnostics dropped = row_count;
    return dropped;
end
$$;

comment on function public.drop_staged_embeddings(text) is
'Drops what stage_embeddings kept for a tenant and returns how many there were; searches never saw '
'them.';

revoke all on function public.drop_staged_embeddings(text) from public;
grant execute on function public.drop_staged_embeddings(text) to contextforge_api;
