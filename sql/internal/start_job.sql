create or replace function contextforge.start_job(tenant_id text, job_id uuid)
returns table (kind text, arguments jsonb, document_names text[])
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform contextforge.require_own_tenants(array[start_job.tenant_id]);
    -- One that was running has lost its worker, and starts anew.
    return query
    update contextforge.jobs as j
    set
        state = 'running', progress_done = 0, progress_total = null,
        started_at = coalesce(j.started_at, clock_timestamp())
    where j.job_id = start_job.job_id and j.tenant_id = start_job.tenant_id
        and j.finished_at is null
    returning j.kind, j.arguments, array(
        select d.name from contextforge.job_documents as d
        where d.job_id = j.job_id
        order by d.position
    );
end
$$;

comment on function contextforge.start_job(text, uuid) is
'Marks a job as running and says what it works on; no row if it has ended or was cancelled.';

revoke all on function contextforge.start_job(text, uuid) from public;
grant execute on function contextforge.start_job(text, uuid) to contextforge_api;
