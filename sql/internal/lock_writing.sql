create or replace function contextforge.lock_writing(tenant_id text, attempt integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    lock constant bigint := hashtextextended('contextforge write ' || tenant_id, 0);
begin
    if attempt <= 2 then
        perform pg_advisory_xact_lock_shared(lock);
    else
        perform pg_advisory_xact_lock(lock);
    end if;
end
$$;

comment on function contextforge.lock_writing(text, integer) is
'Lets writers of a tenant work side by side; one that was thwarted twice waits for the others and '
'then works alone, so that it cannot be thwarted for ever.';

revoke all on function contextforge.lock_writing(text, integer) from public;
grant execute on function contextforge.lock_writing(text, integer) to contextforge_api;
