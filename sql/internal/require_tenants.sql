create or replace function contextforge.require_tenants(tenant_ids text[])
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    missing text;
begin
    if coalesce(cardinality(tenant_ids), 0) = 0 or array_position(tenant_ids, null) is not null then
        raise exception 'tenant_ids is empty'
            using errcode = 'invalid_parameter_value',
                  hint = 'Name at least one tenant, for example array[''acme_corp''].';
    end if;

    select wanted.tenant_id into missing
    from unnest(tenant_ids) as wanted (tenant_id)
    where not exists (
        select from contextforge.tenant_profiles as p where p.tenant_id = wanted.tenant_id
    )
    order by wanted.tenant_id
    limit 1;
    if missing is null then
        return;
    end if;

    -- Only a caller whose API key already names the tenant learns that it does not exist.
    if pg_has_role('contextforge_api', 'usage')
        and missing = any(string_to_array(current_setting('app.tenant_ids', true), ','))
    then
        raise exception 'tenant "%" does not exist', missing
            using errcode = 'no_data_found',
                  hint = 'Create it with: contextforge tenants create ' || missing;
    end if;
    raise exception 'role "%" may not see tenant "%"', current_user, missing
        using errcode = 'insufficient_privilege',
              hint = 'API calls need a key for the tenant; analysts need: '
                     'contextforge analysts grant ROLE TENANT';
end
$$;

comment on function contextforge.require_tenants(text[]) is
'Raises 42501 for a tenant the caller may not see: a denial must not look like an empty result.';

revoke all on function contextforge.require_tenants(text[]) from public;
grant execute on function contextforge.require_tenants(text[])
to contextforge_api, contextforge_analyst;
