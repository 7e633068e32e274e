create or replace function public.read_egress_policies(tenant_ids text[])
returns table (tenant_id text, policy text, changed_at timestamptz)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(read_egress_policies.tenant_ids);
    return query
    select wanted.tenant_id, coalesce(e.policy, 'off'), e.changed_at
    from (select distinct unnest(read_egress_policies.tenant_ids) as tenant_id) as wanted
    left join contextforge.egress_policies as e
        on e.tenant_id = wanted.tenant_id and e.tenant_id = any(read_egress_policies.tenant_ids)
    order by wanted.tenant_id;
end
$$;

comment on function public.read_egress_policies(text[]) is
'What may be sent to Claude for each of these tenants; off for one that was never given a policy.';

revoke all on function public.read_egress_policies(text[]) from public;
grant execute on function public.read_egress_policies(text[])
to contextforge_api, contextforge_analyst;
