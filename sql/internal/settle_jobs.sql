create or replace function contextforge.settle_jobs(
    silence interval default '30 seconds', max_attempts integer default 10
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    lost record;
    returned integer := 0;
begin
    for lost in
        select q.id, q.attempts + 1 < max_attempts and not q.abort_requested as goes_on
        from contextforge_queue.procrastinate_jobs as q
        left join contextforge_queue.procrastinate_workers as w on w.id = q.worker_id
        where q.status = 'doing'
            and (w.id is null or w.last_heartbeat < clock_timestamp() - silence)
        order by q.id
        for update of q skip locked
    loop
        if lost.goes_on then
            perform contextforge_queue.procrastinate_retry_job_v2(lost.id, now(), null, null, null);
            returned := returned + 1;
        else
            delete from contextforge_queue.procrastinate_jobs as q where q.id = lost.id;
        end if;
    end loop;

    update contextforge.jobs as j
    set state = 'queued'
    from contextforge_queue.procrastinate_jobs as q
    where q.id = j.queue_id and q.status = 'todo' and j.state = 'running';

    with ended as (
        update contextforge.jobs as j
        set
            state = case when j.cancel_requested then 'cancelled' else 'failed' end,
            error = case when not j.cancel_requested then jsonb_build_object(
                'code', 'interrupted',
                'message', 'The work was interrupted and could not be taken up again.',
                'hint', 'Queue it again.'
            ) end,
            finished_at = clock_timestamp()
        where j.finished_at is null and not exists (
            select from contextforge_queue.procrastinate_jobs as q
            where q.id = j.queue_id and q.status in ('todo', 'doing')
        )
        returning j.job_id
    )

    delete from contextforge.job_documents as d
    using ended as e
    where d.job_id = e.job_id;
    return returned;
end
$$;

comment on function contextforge.settle_jobs(interval, integer) is
'For the worker: puts jobs back on the queue whose worker was not heard of for so long, and fails '
'those that were tried too often or that the queue has lost. Returns how many were put back.';

revoke all on function contextforge.settle_jobs(interval, integer) from public;
grant execute on function contextforge.settle_jobs(interval, integer) to contextforge_worker;
