-- On a new database there is nothing to drop, which is no news.
set local client_min_messages = warning;
drop function if exists public.upsert_nodes(text, jsonb, vector[], text, text);

create or replace function public.upsert_nodes(
    tenant_id text,
    nodes jsonb,
    embeddings vector[] default null,
    dataset_name text default 'default',
    embedder_version text default null,
    allow_mixed boolean default false
)
returns table (external_id text, node_id integer, action text)
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    drafts contextforge.node_draft[];
    most_attempts constant integer := 5;
    broken_key text;
begin
    perform contextforge.require_tenants(array[upsert_nodes.tenant_id]);
    for attempt in 1 .. most_attempts loop
        begin
            perform contextforge.lock_writing(upsert_nodes.tenant_id, attempt);
            -- Under the lock: switch_embedder cannot change the tenant's embedder from here on.
            perform contextforge.check_nodes(
                nodes, embeddings,
                contextforge.register_embedder(
                    upsert_nodes.tenant_id, upsert_nodes.embedder_version, embeddings, allow_mixed
                )
            );
            drafts := contextforge.draft_nodes(
                upsert_nodes.tenant_id, upsert_nodes.dataset_name, nodes, embeddings,
                upsert_nodes.embedder_version
            );
            if drafts is null then
                return;
            end if;
            return query select w.external_id, w.node_id, w.action
                from contextforge.write_nodes(drafts) as w;
            return;
        exception
            -- A parent of this batch that another transaction adds or deletes meanwhile breaks the
            -- foreign key; a parent that is not there at all is no constraint's finding, but ours.
            when serialization_failure or deadlock_detected or foreign_key_violation then
                get stacked diagnostics broken_key = constraint_name;
                if attempt = most_attempts or (sqlstate = '23503' and broken_key = '') then
                    raise;
                end if;
        end;
    end loop;
end
$$;

comment on function public.upsert_nodes(text, jsonb, vector[], text, text, boolean) is
'Stores a batch of nodes of one tenant and dataset in one transaction: nodes, vectors, postings '
'and statistics. A node is known by its external_id; what is unchanged costs a comparison. '
'Each json object has external_id and node_type, and may have title, summary, content, metadata, '
'parent (external_id) or parent_id, section_path, order_index, header, doc_title, url, lang, '
'space_id, acl, token_count, searchable. embeddings[i] belongs to nodes[i]. Returns external_id, '
'node_id and action (added, changed, unchanged). allow_mixed lets in another embedder than the '
'tenant''s if its dimension is the same.';

revoke all on function public.upsert_nodes(text, jsonb, vector[], text, text, boolean)
from public;
grant execute on function public.upsert_nodes(text, jsonb, vector[], text, text, boolean)
to contextforge_api;
