create or replace function contextforge.put_on_queue(job_id uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    job contextforge.jobs;
    queue_ids bigint[];
begin
    select j.* into strict job from contextforge.jobs as j where j.job_id = put_on_queue.job_id;
    -- Jobs of one tenant with one key run one after the other; the lock does not say whose it is.
    queue_ids := contextforge_queue.procrastinate_defer_jobs_v1(array[row(
        'contextforge', 'run_job', 0,
        encode(sha256(convert_to(job.tenant_id || ' ' || job.order_key, 'UTF8')), 'hex'),
        null, jsonb_build_object('job_id', job.job_id), null
    )::contextforge_queue.procrastinate_job_to_defer_v1]);
    update contextforge.jobs as j
    set queue_id = queue_ids[1]
    where j.job_id = put_on_queue.job_id;
end
$$;

comment on function contextforge.put_on_queue(uuid) is
'Gives a job to the workers. The queue knows nothing of it but its id.';

revoke all on function contextforge.put_on_queue(uuid) from public;
