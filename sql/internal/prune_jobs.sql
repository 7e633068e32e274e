create or replace function contextforge.prune_jobs(tenant_id text, older_than interval)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    pruned integer;
begin
    delete from contextforge.jobs as j
    where j.tenant_id = prune_jobs.tenant_id and j.finished_at < now() - older_than;
    get diagnostics pruned = row_count;
    return pruned;
end
$$;

comment on function contextforge.prune_jobs(text, interval) is
'For the owner: forgets the jobs of a tenant that ended longer ago than that. Returns how many.';

revoke all on function contextforge.prune_jobs(text, interval) from public;
