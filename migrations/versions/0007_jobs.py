"""Queued work: the queue of procrastinate, and what a tenant may know of its own jobs.

- contextforge.jobs is a registry table: nobody has grants on it, tenants go through functions. What
  a job works on stands here, and documents that were handed over whole in job_documents.
- The queue has a schema of its own, contextforge_queue, owned like the rest. Its rows hold the id
  of a job and nothing else that a tenant brought. Only contextforge_worker reaches it, a role the
  service's login takes on in the worker and does not inherit: no other connection sees the queue.
- Its triggers that notify are dropped: any login may listen to a channel, and would learn when
  other tenants queue work and how much. The worker polls.
"""

from alembic import context, op
from procrastinate.schema import SchemaManager

revision = "0007"
down_revision = "0006"


def run_script(script: str) -> None:
    """Run a script as it is: op.execute would double its percent signs."""
    if context.is_offline_mode():
        op.get_context().impl.static_output(script)
    else:
        op.get_bind().execution_options(no_parameters=True).exec_driver_sql(script)


def upgrade() -> None:
    op.execute("""
        create table contextforge.jobs (
            job_id uuid primary key default gen_random_uuid(),
            tenant_id text not null references contextforge.tenants on delete cascade,
            kind text not null check (kind ~ '^[a-z][a-z_]{0,62}$'),
            arguments jsonb not null default '{}' check (jsonb_typeof(arguments) = 'object'),
            order_key text,
            state text not null default 'queued'
                check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
            progress_done integer not null default 0 check (progress_done >= 0),
            progress_total integer check (progress_total >= 0),
            result jsonb,
            error jsonb,
            cancel_requested boolean not null default false,
            queue_id bigint,
            document_count integer not null default 0,
            created_at timestamptz not null default clock_timestamp(),
            started_at timestamptz,
            finished_at timestamptz,
            check ((finished_at is null) = (state in ('queued', 'running')))
        );
        create index idx_jobs_tenant on contextforge.jobs (tenant_id, created_at desc, job_id);
        create index idx_jobs_open on contextforge.jobs (queue_id) where finished_at is null;

        create table contextforge.job_documents (
            job_id uuid not null references contextforge.jobs on delete cascade,
            position integer not null,
            name text not null check (name <> ''),
            content bytea not null,
            primary key (job_id, position)
        );

        create schema contextforge_queue;
        set local search_path = contextforge_queue, pg_catalog;
        set local client_min_messages = warning;
    """)
    run_script(SchemaManager.get_schema())
    run_script("""
        set local client_min_messages to default;
        set local search_path to default;
        drop trigger procrastinate_jobs_notify_queue_job_inserted_v1
            on contextforge_queue.procrastinate_jobs;
        drop trigger procrastinate_jobs_notify_queue_job_aborted_v1
            on contextforge_queue.procrastinate_jobs;
        do $$
        declare
            routine regprocedure;
        begin
            -- Pinned, so that they also work inside functions that search nothing but pg_catalog.
            for routine in
                select p.oid from pg_catalog.pg_proc as p
                where p.pronamespace = 'contextforge_queue'::regnamespace
            loop
                execute format(
                    'alter function %s set search_path = contextforge_queue, pg_catalog, pg_temp',
                    routine
                );
                execute format('revoke all on function %s from public', routine);
                execute format('grant execute on function %s to contextforge_worker', routine);
            end loop;
        end
        $$;
        grant usage on schema contextforge_queue to contextforge_worker;
        grant select, insert, update, delete on all tables in schema contextforge_queue
            to contextforge_worker;
        grant usage on all sequences in schema contextforge_queue to contextforge_worker;
    """)


def downgrade() -> None:
    op.execute("""
        drop schema contextforge_queue cascade;
        drop table contextforge.job_documents, contextforge.jobs;
    """)
