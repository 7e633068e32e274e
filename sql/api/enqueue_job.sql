create or replace function public.enqueue_job(
    tenant_id text, kind text, arguments jsonb default '{}', order_key text default null,
    document_names text[] default '{}', document_contents bytea[] default '{}'
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    new_id uuid;
begin
    perform contextforge.require_own_tenants(array[enqueue_job.tenant_id]);
    if cardinality(document_names) <> cardinality(document_contents) then
        raise exception '% document names for % contents',
            cardinality(document_names), cardinality(document_contents)
            using errcode = 'invalid_parameter_value';
    end if;
    insert into contextforge.jobs (tenant_id, kind, arguments, order_key, document_count)
    values (
        enqueue_job.tenant_id, enqueue_job.kind, enqueue_job.arguments,
        coalesce(enqueue_job.order_key, enqueue_job.kind), cardinality(document_names)
    )
    returning job_id into new_id;
    insert into contextforge.job_documents (job_id, position, name, content)
    select new_id, given.position, given.name, given.content
    from unnest(document_names, document_contents)
        with ordinality as given (name, content, position);
    perform contextforge.put_on_queue(new_id);
    return new_id;
end
$$;

comment on function public.enqueue_job(text, text, jsonb, text, text[], bytea[]) is
'Queues work of a tenant for contextforge worker and returns its id. Jobs of one tenant with one '
'order_key (the kind, unless given) run one after the other, oldest first. Documents are kept '
'until the job ends.';

revoke all on function public.enqueue_job(text, text, jsonb, text, text[], bytea[]) from public;
grant execute on function public.enqueue_job(text, text, jsonb, text, text[], bytea[])
to contextforge_api;
