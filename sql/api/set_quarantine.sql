create or replace function public.set_quarantine(
    tenant_id text, node_ids integer[], content_hashes bytea[], reasons text[]
)
returns table (node_id integer, quarantined boolean)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
begin
    perform contextforge.require_tenants(array[set_quarantine.tenant_id]);
    if cardinality(node_ids) <> cardinality(content_hashes)
        or cardinality(node_ids) <> cardinality(reasons)
    then
        raise exception 'node_ids, content_hashes and reasons differ in length'
            using errcode = 'invalid_parameter_value',
                  hint = 'Give one hash and one reason for each node; null takes the mark away.';
    end if;
    return query
    update public.knowledge_nodes as n
    set metadata = case
            when m.reason is null then n.metadata - 'quarantined' - 'quarantine_reason'
            else n.metadata
                || jsonb_build_object('quarantined', true, 'quarantine_reason', m.reason)
        end,
        updated_at = now()
    from unnest(node_ids, content_hashes, reasons) as m (node_id, content_hash, reason)
    where n.tenant_id = set_quarantine.tenant_id and n.node_id = m.node_id
        and n.content_hash = m.content_hash
        and n.metadata ->> 'quarantine_reason' is distinct from m.reason
    returning n.node_id, m.reason is not null;
end
$$;

comment on function public.set_quarantine(text, integer[], bytea[], text[]) is
'Marks nodes as quarantined, each with a reason, in their metadata (quarantined, '
'quarantine_reason); a null reason takes the mark away. A node whose text is no longer the one '
'that was judged, told by its content_hash, is left alone. Returns the nodes that changed.';

revoke all on function public.set_quarantine(text, integer[], bytea[], text[]) from public;
grant execute on function public.set_quarantine(text, integer[], bytea[], text[])
to contextforge_api;
