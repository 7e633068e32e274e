create or replace function contextforge.report_job_progress(
    tenant_id text, job_id uuid, done integer, total integer
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform contextforge.require_own_tenants(array[report_job_progress.tenant_id]);
    update contextforge.jobs as j
    set progress_done = done, progress_total = total
    where j.job_id = report_job_progress.job_id
        and j.tenant_id = report_job_progress.tenant_id
        and j.state = 'running';
end
$$;

comment on function contextforge.report_job_progress(text, uuid, integer, integer) is
'Says how far a running job is, and of how much if that is known.';

revoke all on function contextforge.report_job_progress(text, uuid, integer, integer) from public;
grant execute on function contextforge.report_job_progress(text, uuid, integer, integer)
to contextforge_api;
