create or replace function public.finish_egress_call(
    tenant_ids text[],
    call_id uuid,
    outcome text,
    attempts integer,
    input_tokens integer default null,
    output_tokens integer default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(finish_egress_call.tenant_ids);
    update public.egress_calls as c
    set finished_at = clock_timestamp(), outcome = finish_egress_call.outcome,
        attempts = finish_egress_call.attempts,
        input_tokens = finish_egress_call.input_tokens,
        output_tokens = finish_egress_call.output_tokens
    where c.tenant_id = any(finish_egress_call.tenant_ids)
        and c.call_id = finish_egress_call.call_id
        and c.finished_at is null;
    if not found then
        raise exception 'call % was not started for these tenants, or is finished', call_id
            using errcode = 'no_data_found';
    end if;
end
$$;

comment on function public.finish_egress_call(text[], uuid, text, integer, integer, integer) is
'Completes the record of a call: answered, with what it cost, or failed. attempts is how often it '
'was sent. Only once.';

revoke all on function public.finish_egress_call(text[], uuid, text, integer, integer, integer)
from public;
grant execute on function
public.finish_egress_call(text[], uuid, text, integer, integer, integer)
to contextforge_api;
