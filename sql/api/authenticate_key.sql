create or replace function public.authenticate_key(key_hash bytea)
returns table (key_id text, tenant_ids text[], scopes text[], acl_groups text[])
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select k.key_id, k.tenant_ids, k.scopes, k.acl_groups
    from contextforge.api_keys as k
    where k.key_hash = authenticate_key.key_hash
        and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now())
$$;

comment on function public.authenticate_key(bytea) is
'What the API key with this SHA-256 may do; no row for an unknown, expired or revoked one.';

revoke all on function public.authenticate_key(bytea) from public;
grant execute on function public.authenticate_key(bytea) to contextforge_api;
