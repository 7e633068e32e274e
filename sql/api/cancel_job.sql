create or replace function public.cancel_job(tenant_id text, job_id uuid)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job constant contextforge.jobs
        := contextforge.lock_own_job(cancel_job.tenant_id, cancel_job.job_id);
begin
    if job.finished_at is not null then
        return job.state;
    end if;
    update contextforge.jobs as j set cancel_requested = true where j.job_id = job.job_id;
    -- Off the queue if it waits there; a worker that has it is asked to stop.
    perform contextforge_queue.procrastinate_cancel_job_v1(job.queue_id, true, true);
    if job.state = 'running' and exists (
        select from contextforge_queue.procrastinate_jobs as q
        where q.id = job.queue_id and q.status = 'doing'
    ) then
        return job.state;
    end if;
    perform contextforge.end_job(cancel_job.tenant_id, cancel_job.job_id, 'cancelled');
    return 'cancelled';
end
$$;

comment on function public.cancel_job(text, uuid) is
'Takes a job off the queue, or asks the worker that has it to stop, which it does between two '
'documents or batches. Returns the state: still running if it was asked; as it is if it has ended.';

revoke all on function public.cancel_job(text, uuid) from public;
grant execute on function public.cancel_job(text, uuid) to contextforge_api;
