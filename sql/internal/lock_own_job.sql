create or replace function contextforge.lock_own_job(tenant_id text, job_id uuid)
returns contextforge.jobs
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    job contextforge.jobs;
begin
    perform contextforge.require_own_tenants(array[lock_own_job.tenant_id]);
    select j.* into job
    from contextforge.jobs as j
    where j.job_id = lock_own_job.job_id and j.tenant_id = lock_own_job.tenant_id
    for update;
    if not found then
        raise exception 'there is no job "%"', lock_own_job.job_id
            using errcode = 'no_data_found', hint = 'See: contextforge jobs list';
    end if;
    return job;
end
$$;

comment on function contextforge.lock_own_job(text, uuid) is
'The job, locked until the transaction ends. An id of another tenant is answered like one that '
'nobody has.';

revoke all on function contextforge.lock_own_job(text, uuid) from public;
