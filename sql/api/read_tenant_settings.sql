create or replace function public.read_tenant_settings(tenant_id text)
returns jsonb
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[read_tenant_settings.tenant_id]);
    return (
        select p.settings
        from contextforge.tenant_profiles as p
        where p.tenant_id = read_tenant_settings.tenant_id
    );
end
$$;

comment on function public.read_tenant_settings(text) is
'The settings a tenant has of its own, by name; they stand before those of the service.';

revoke all on function public.read_tenant_settings(text) from public;
grant execute on function public.read_tenant_settings(text)
to contextforge_api, contextforge_analyst;
