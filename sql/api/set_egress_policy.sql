create or replace function public.set_egress_policy(tenant_id text, policy text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[set_egress_policy.tenant_id]);
    if coalesce(set_egress_policy.policy not in ('off', 'expansion', 'synthesis', 'all'), true) then
        raise exception '"%" is not an egress policy', set_egress_policy.policy
            using errcode = 'invalid_parameter_value',
                  hint = 'The policies are off, expansion, synthesis, all.';
    end if;
    insert into contextforge.egress_policies (tenant_id, policy)
    values (set_egress_policy.tenant_id, set_egress_policy.policy)
    on conflict (tenant_id) do update
        set policy = excluded.policy, changed_at = now();
end
$$;

comment on function public.set_egress_policy(text, text) is
'Decides what may be sent to Claude for a tenant: off (nothing, as for a tenant that was never '
'given a policy), expansion (questions), synthesis (questions with their context) or all.';

revoke all on function public.set_egress_policy(text, text) from public;
