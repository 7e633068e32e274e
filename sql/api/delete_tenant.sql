create or replace function public.delete_tenant(tenant_id text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    -- The profile goes first: from here on no write of this tenant passes require_tenants.
    delete from contextforge.tenant_profiles as p where p.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.ann_nodes as x where x.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.search_nodes as s where s.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.postings as p where p.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.segments as s where s.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.rank_states as s where s.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.link_marks as m where m.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.egress_policies as e where e.tenant_id = delete_tenant.tenant_id;
    delete from public.egress_calls as c where c.tenant_id = delete_tenant.tenant_id;
    delete from public.feedback as f where f.tenant_id = delete_tenant.tenant_id;
    delete from public.traces as t where t.tenant_id = delete_tenant.tenant_id;
    delete from public.asked_questions as q where q.tenant_id = delete_tenant.tenant_id;
    delete from public.experiments as e where e.tenant_id = delete_tenant.tenant_id;
    delete from public.recall_audits as a where a.tenant_id = delete_tenant.tenant_id;
    delete from public.size_marks as m where m.tenant_id = delete_tenant.tenant_id;
    delete from public.node_ranks as r where r.tenant_id = delete_tenant.tenant_id;
    delete from public.node_links as l where l.tenant_id = delete_tenant.tenant_id;
    delete from public.knowledge_nodes as n where n.tenant_id = delete_tenant.tenant_id;
    delete from contextforge.api_keys as k
    where k.tenant_ids = array[delete_tenant.tenant_id];
    update contextforge.api_keys as k
    set tenant_ids = array_remove(k.tenant_ids, delete_tenant.tenant_id)
    where delete_tenant.tenant_id = any(k.tenant_ids);
    delete from contextforge.tenants as t where t.tenant_id = delete_tenant.tenant_id;
    return found;
end
$$;

comment on function public.delete_tenant(text) is
'Deletes a tenant with everything it has: nodes, links, statistics, grants, and keys that open '
'nothing else. False if there was none.';

revoke all on function public.delete_tenant(text) from public;
