create or replace function contextforge.job_tenant(job_id uuid)
returns text
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select j.tenant_id from contextforge.jobs as j where j.job_id = job_tenant.job_id
$$;

comment on function contextforge.job_tenant(uuid) is
'For the worker: whose job that is, so that it can act for this tenant and no other. Null if the '
'job is gone.';

revoke all on function contextforge.job_tenant(uuid) from public;
grant execute on function contextforge.job_tenant(uuid) to contextforge_worker;
