create or replace function contextforge.read_job_document(
    tenant_id text, job_id uuid, place integer
)
returns bytea
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    content bytea;
begin
    perform contextforge.require_own_tenants(array[read_job_document.tenant_id]);
    select d.content into content
    from contextforge.job_documents as d
    join contextforge.jobs as j on j.job_id = d.job_id
    where d.job_id = read_job_document.job_id and d.position = read_job_document.place
        and j.tenant_id = read_job_document.tenant_id;
    if not found then
        raise exception 'job "%" has no document %',
            read_job_document.job_id, read_job_document.place
            using errcode = 'no_data_found';
    end if;
    return content;
end
$$;

comment on function contextforge.read_job_document(text, uuid, integer) is
'The bytes of a document a job came with, by its place from 1 on. One that is missing is an error: '
'the job has ended elsewhere, and to go on without it could remove what it holds.';

revoke all on function contextforge.read_job_document(text, uuid, integer) from public;
grant execute on function contextforge.read_job_document(text, uuid, integer) to contextforge_api;
