create or replace function contextforge.return_job(tenant_id text, job_id uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform contextforge.require_own_tenants(array[return_job.tenant_id]);
    update contextforge.jobs as j
    set state = 'queued'
    where j.job_id = return_job.job_id and j.tenant_id = return_job.tenant_id
        and j.state = 'running';
end
$$;

comment on function contextforge.return_job(text, uuid) is
'Marks a running job as queued again: its worker stops, or the database was out of reach.';

revoke all on function contextforge.return_job(text, uuid) from public;
grant execute on function contextforge.return_job(text, uuid) to contextforge_api;
