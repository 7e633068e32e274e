create or replace function public.admit_key(
    key_hash bytea, per_minute double precision, burst integer
)
returns table (
    key_id text, tenant_ids text[], scopes text[], acl_groups text[],
    wait_seconds double precision
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    moment constant timestamptz := clock_timestamp();
    step interval;
    reserve interval;
    known record;
    refused_until timestamptz;
begin
    select k.* into known from public.authenticate_key(admit_key.key_hash) as k;
    if not found then
        return;
    end if;
    if admit_key.per_minute > 0 then
        step := make_interval(secs => 60 / admit_key.per_minute);
        reserve := step * (admit_key.burst - 1);
        insert into contextforge.key_buckets as b (key_id, full_at)
        values (known.key_id, moment + step)
        on conflict (key_id) do update
        set full_at = greatest(b.full_at, moment) + step
        where b.full_at <= moment + reserve;
        if not found then
            select b.full_at - reserve into refused_until
            from contextforge.key_buckets as b
            where b.key_id = known.key_id;
        end if;
    end if;
    return query select
        known.key_id, known.tenant_ids, known.scopes, known.acl_groups,
        -- greatest() passes over a null, which here means admitted.
        case
            when refused_until is not null
                then greatest(extract(epoch from refused_until - moment), 0)::double precision
        end;
end
$$;

comment on function public.admit_key(bytea, double precision, integer) is
'authenticate_key that counts: a key has per_minute calls a minute and may use burst of them at '
'once. wait_seconds is null where the call is admitted, else when to try again; a refused call '
'is not counted. per_minute 0 counts nothing.';

revoke all on function public.admit_key(bytea, double precision, integer) from public;
grant execute on function public.admit_key(bytea, double precision, integer)
to contextforge_api;
