create or replace function public.retry_job(tenant_id text, job_id uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job constant contextforge.jobs
        := contextforge.lock_own_job(retry_job.tenant_id, retry_job.job_id);
begin
    if job.state not in ('failed', 'cancelled') then
        raise exception 'job "%" is %', job.job_id, job.state
            using errcode = 'object_not_in_prerequisite_state',
                  hint = 'Only a job that failed or was cancelled can be queued again.';
    end if;
    if job.document_count > 0 then
        raise exception 'the documents of job "%" are gone: they are kept until a job ends',
            job.job_id
            using errcode = 'object_not_in_prerequisite_state', hint = 'Send them again.';
    end if;
    update contextforge.jobs as j
    set
        state = 'queued', progress_done = 0, progress_total = null, result = null, error = null,
        cancel_requested = false, started_at = null, finished_at = null
    where j.job_id = job.job_id;
    perform contextforge.put_on_queue(job.job_id);
end
$$;

comment on function public.retry_job(text, uuid) is
'Queues a job that failed or was cancelled once more. One that came with documents is refused: '
'they went when it ended.';

revoke all on function public.retry_job(text, uuid) from public;
grant execute on function public.retry_job(text, uuid) to contextforge_api;
