create or replace function public.start_egress_call(
    tenant_ids text[],
    purpose text,
    model text,
    text_sha256 bytea,
    consent text default 'policy'
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    started constant uuid := gen_random_uuid();
    denied record;
begin
    if start_egress_call.consent = 'policy' then
        select e.tenant_id, e.policy into denied
        from public.read_egress_policies(start_egress_call.tenant_ids) as e
        where e.policy not in ('all', start_egress_call.purpose)
        order by e.tenant_id
        limit 1;
        if denied.tenant_id is not null then
            raise exception 'the egress policy of tenant "%" is %, which does not allow %',
                denied.tenant_id, denied.policy, start_egress_call.purpose
                using errcode = 'insufficient_privilege',
                      hint = format(
                          'An administrator can allow it: contextforge egress set --tenant %s %s',
                          denied.tenant_id, start_egress_call.purpose
                      );
        end if;
    end if;
    perform contextforge.require_tenants(start_egress_call.tenant_ids);
    insert into public.egress_calls (tenant_id, call_id, purpose, consent, model, text_sha256)
    select wanted.tenant_id, started, start_egress_call.purpose, start_egress_call.consent,
        start_egress_call.model, start_egress_call.text_sha256
    from (select distinct unnest(start_egress_call.tenant_ids) as tenant_id) as wanted;
    return started;
end
$$;

comment on function public.start_egress_call(text[], text, text, bytea, text) is
'Records a call to Claude that is about to be made for these tenants, one row each, and returns '
'its id. With consent policy it is refused (42501) unless every tenant''s policy allows the '
'purpose; with consent key the caller brought a key of its own.';

revoke all on function public.start_egress_call(text[], text, text, bytea, text) from public;
grant execute on function public.start_egress_call(text[], text, text, bytea, text)
to contextforge_api;
