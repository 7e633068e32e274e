create or replace function contextforge.prune_traces(tenant_id text, older_than interval)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    pruned integer;
begin
    delete from public.traces as t
    where t.tenant_id = prune_traces.tenant_id and t.created_at < now() - older_than;
    get diagnostics pruned = row_count;
    delete from public.asked_questions as q
    where q.tenant_id = prune_traces.tenant_id and q.asked_at < now() - older_than;
    delete from public.recall_audits as a
    where a.tenant_id = prune_traces.tenant_id and a.audited_at < now() - older_than;
    return pruned;
end
$$;

comment on function contextforge.prune_traces(text, interval) is
'For the owner: forgets the traces of a tenant that are older, with their feedback, the questions '
'and audits of that time. Returns how many traces.';

revoke all on function contextforge.prune_traces(text, interval) from public;
