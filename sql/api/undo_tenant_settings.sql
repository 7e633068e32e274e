create or replace function public.undo_tenant_settings(tenant_id text)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    restored jsonb;
begin
    perform contextforge.require_tenants(array[undo_tenant_settings.tenant_id]);
    perform from contextforge.tenant_profiles as p
    where p.tenant_id = undo_tenant_settings.tenant_id
    for update;
    delete from contextforge.replaced_settings as r
    where r.tenant_id = undo_tenant_settings.tenant_id
        and r.version = (
            select max(newest.version)
            from contextforge.replaced_settings as newest
            where newest.tenant_id = undo_tenant_settings.tenant_id
        )
    returning r.settings into restored;
    if restored is null then
        raise exception 'tenant "%" has no earlier settings', undo_tenant_settings.tenant_id
            using errcode = 'no_data_found',
                  hint = 'Only what write_tenant_settings replaced can be restored, once each.';
    end if;
    update contextforge.tenant_profiles as p
    set settings = restored
    where p.tenant_id = undo_tenant_settings.tenant_id;
    return restored;
end
$$;

comment on function public.undo_tenant_settings(text) is
'Restores the settings a tenant had before the last write_tenant_settings, and returns them; '
'again, those before that. Raises P0002 where there are none.';

revoke all on function public.undo_tenant_settings(text) from public;
grant execute on function public.undo_tenant_settings(text) to contextforge_api;
