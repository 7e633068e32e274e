create or replace function public.create_tenant(
    tenant_id text, display_name text default null, lang text default 'en'
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if tenant_id is null or tenant_id !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$' then
        raise exception '"%" cannot be a tenant id', create_tenant.tenant_id
            using errcode = 'invalid_parameter_value',
                  hint = 'Use up to 63 letters, digits and _ . : - and start with a letter or '
                         'a digit.';
    end if;
    insert into contextforge.tenants (tenant_id, display_name)
    values (create_tenant.tenant_id, create_tenant.display_name)
    on conflict do nothing;
    if not found then
        return false;
    end if;
    insert into contextforge.tenant_profiles (tenant_id, lang, text_config)
    values (
        create_tenant.tenant_id, coalesce(create_tenant.lang, 'en'),
        contextforge.text_config(coalesce(create_tenant.lang, 'en'))
    );
    return true;
end
$$;

comment on function public.create_tenant(text, text, text) is
'Adds a tenant whose texts are in the given language unless a node says otherwise. '
'True if it is new, false if it was there.';

revoke all on function public.create_tenant(text, text, text) from public;
