create or replace function public.find_jobs(
    tenant_ids text[], only_job uuid default null, max_rows integer default 100
)
returns table (
    job_id uuid, tenant_id text, kind text, state text, progress_done integer,
    progress_total integer, result jsonb, error jsonb, created_at timestamptz,
    started_at timestamptz, finished_at timestamptz
)
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_own_tenants(find_jobs.tenant_ids);
    return query
    select
        j.job_id, j.tenant_id, j.kind, j.state, j.progress_done, j.progress_total, j.result,
        j.error, j.created_at, j.started_at, j.finished_at
    from contextforge.jobs as j
    where j.tenant_id = any(find_jobs.tenant_ids)
        and (find_jobs.only_job is null or j.job_id = find_jobs.only_job)
    order by j.created_at desc, j.job_id
    limit greatest(find_jobs.max_rows, 0);
end
$$;

comment on function public.find_jobs(text[], uuid, integer) is
'The jobs of these tenants, newest first, or the one of this id; no row if it is not theirs.';

revoke all on function public.find_jobs(text[], uuid, integer) from public;
grant execute on function public.find_jobs(text[], uuid, integer) to contextforge_api;
