create or replace function contextforge.require_own_tenants(tenant_ids text[])
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    own constant text[] := string_to_array(current_setting('app.tenant_ids', true), ',');
    tenant text;
begin
    if coalesce(cardinality(tenant_ids), 0) = 0 or array_position(tenant_ids, null) is not null then
        raise exception 'tenant_ids is empty'
            using errcode = 'invalid_parameter_value',
                  hint = 'Name at least one tenant, for example array[''acme_corp''].';
    end if;
    foreach tenant in array tenant_ids loop
        if own is null or tenant <> all(own) then
            raise exception 'role "%" may not see tenant "%"', session_user, tenant
                using errcode = 'insufficient_privilege',
                      hint = 'API calls need a key for the tenant.';
        end if;
        if not exists (select from contextforge.tenants as t where t.tenant_id = tenant) then
            raise exception 'tenant "%" does not exist', tenant
                using errcode = 'no_data_found',
                      hint = 'Create it with: contextforge tenants create ' || tenant;
        end if;
    end loop;
end
$$;

comment on function contextforge.require_own_tenants(text[]) is
'Raises 42501 for a tenant that app.tenant_ids does not name. For functions that run as the owner, '
'whom row-level security does not stop: require_tenants would let them see everyone.';

revoke all on function contextforge.require_own_tenants(text[]) from public;
