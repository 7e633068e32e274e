create or replace function contextforge.end_job(
    tenant_id text, job_id uuid, end_state text, result jsonb default null,
    error jsonb default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform contextforge.require_own_tenants(array[end_job.tenant_id]);
    update contextforge.jobs as j
    set
        state = end_state, result = end_job.result, error = end_job.error,
        finished_at = clock_timestamp()
    where j.job_id = end_job.job_id and j.tenant_id = end_job.tenant_id
        and j.finished_at is null;
    if not found then
        return false;
    end if;
    delete from contextforge.job_documents as d where d.job_id = end_job.job_id;
    return true;
end
$$;

comment on function contextforge.end_job(text, uuid, text, jsonb, jsonb) is
'Ends a job with its result or its error and removes the documents it came with. False if it has '
'ended before, or is gone.';

revoke all on function contextforge.end_job(text, uuid, text, jsonb, jsonb) from public;
grant execute on function contextforge.end_job(text, uuid, text, jsonb, jsonb) to contextforge_api;
