create or replace function public.delete_nodes(
    tenant_id text, external_ids text[], dataset_name text default 'default'
)
returns table (external_id text, node_id integer)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    most_attempts constant integer := 5;
begin
    perform contextforge.require_tenants(array[delete_nodes.tenant_id]);

    for attempt in 1 .. most_attempts loop
        begin
            perform contextforge.lock_writing(delete_nodes.tenant_id, attempt);
            return query select r.external_id, r.node_id
                from contextforge.remove_nodes(
                    delete_nodes.tenant_id, external_ids, delete_nodes.dataset_name
                ) as r;
            return;
        exception
            -- A child that another transaction adds at the last moment breaks the foreign key.
            when serialization_failure or deadlock_detected or foreign_key_violation then
                if attempt = most_attempts then
                    raise;
                end if;
        end;
    end loop;
end
$$;

comment on function public.delete_nodes(text, text[], text) is
'Deletes nodes by external_id, with everything below them, their links and ranks, in one '
'transaction. Returns what was deleted; an unknown external_id is no error.';

revoke all on function public.delete_nodes(text, text[], text) from public;
grant execute on function public.delete_nodes(text, text[], text) to contextforge_api;
