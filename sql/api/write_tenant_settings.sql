create or replace function public.write_tenant_settings(tenant_id text, settings jsonb)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    replaced jsonb;
begin
    perform contextforge.require_tenants(array[write_tenant_settings.tenant_id]);
    if jsonb_typeof(write_tenant_settings.settings) is distinct from 'object' then
        raise exception 'settings is not a json object'
            using errcode = 'invalid_parameter_value',
                  hint = 'Give names and values, for example {"hybrid_fusion": "convex"}.';
    end if;
    -- The lock keeps two writers from numbering the same version.
    select p.settings into replaced
    from contextforge.tenant_profiles as p
    where p.tenant_id = write_tenant_settings.tenant_id
    for update;
    insert into contextforge.replaced_settings (tenant_id, version, settings)
    select write_tenant_settings.tenant_id, coalesce(max(r.version), 0) + 1, replaced
    from contextforge.replaced_settings as r
    where r.tenant_id = write_tenant_settings.tenant_id;
    update contextforge.tenant_profiles as p
    set settings = write_tenant_settings.settings
    where p.tenant_id = write_tenant_settings.tenant_id;
    return replaced;
end
$$;

comment on function public.write_tenant_settings(text, jsonb) is
'Gives a tenant these settings in place of all it had, which are kept for undo_tenant_settings '
'and returned.';

revoke all on function public.write_tenant_settings(text, jsonb) from public;
grant execute on function public.write_tenant_settings(text, jsonb) to contextforge_api;
