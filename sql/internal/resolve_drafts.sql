create or replace function contextforge.resolve_drafts(
    drafts contextforge.node_draft[],
    stored public.knowledge_nodes[],
    default_config regconfig
)
returns public.knowledge_nodes[]
language plpgsql
volatile
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set enable_nestloop = off
set work_mem = '64MB'
as $$
#variable_conflict use_column
declare
    tenant constant text := (drafts[1].node).tenant_id;
    dataset constant text := (drafts[1].node).dataset_name;
    ids integer[];
    orphan record;
    resolved public.knowledge_nodes[];
begin
    ids := array(
        select coalesce(s.node_id, nextval('contextforge.node_ids')::integer)
        from unnest(drafts) with ordinality as d (item, parent, searchable, node, place)
        left join unnest(stored) as s on s.external_id = (d.node).external_id
        order by d.place
    );

    with numbered as (
        select d.item, d.parent, d.searchable, d.node, i.node_id
        from unnest(drafts) with ordinality as d (item, parent, searchable, node, place)
        join unnest(ids) with ordinality as i (node_id, place) on i.place = d.place
    ),

    placed as (
        select
            d.item, d.node, d.searchable, d.node_id, s as stored,
            d.parent is not null or (d.node).parent_id is not null as wants_parent,
            coalesce(sibling.node_id, named.node_id, given.node_id) as parent_id,
            s.content_hash is not distinct from (d.node).content_hash as same_text
        from numbered as d
        left join unnest(stored) as s on s.node_id = d.node_id
        left join numbered as sibling on (sibling.node).external_id = d.parent
        left join (
            select n.node_id, n.external_id
            from public.knowledge_nodes as n
            where n.tenant_id = tenant and n.dataset_name = dataset
                and n.external_id = any(array(select x.parent from unnest(drafts) as x))
        ) as named on named.external_id = d.parent
        left join (
            select n.node_id
            from public.knowledge_nodes as n
            where n.tenant_id = tenant
                and n.node_id = any(array(select (x.node).parent_id from unnest(drafts) as x))
        ) as given on given.node_id = (d.node).parent_id
    )

    select array_agg(
        row(
            tenant, p.node_id, (p.node).external_id, dataset, (p.node).node_type,
            (p.node).title, (p.node).summary, (p.node).content, (p.node).metadata,
            case when p.wants_parent then coalesce(p.parent_id, -p.item) end,
            (p.node).section_path, (p.node).order_index, (p.node).header, (p.node).doc_title,
            (p.node).url, (p.node).lang, (p.node).space_id, (p.node).acl,
            (p.node).token_count, (p.node).content_hash,
            case
                when (p.node).embedding is not null then (p.node).embedder_version
                when p.same_text then (p.stored).embedder_version
            end,
            case
                when p.same_text then (p.stored).searchable_text
                when p.searchable then contextforge.index_text(
                    coalesce(contextforge.text_config((p.node).lang), default_config),
                    concat_ws(
                        ' ', nullif((p.node).title, ''), nullif((p.node).summary, ''),
                        (p.node).header, nullif((p.node).content, '')
                    )
                )
            end,
            case
                when (p.node).embedding is not null then (p.node).embedding
                when p.same_text then (p.stored).embedding
            end,
            coalesce((p.stored).created_at, now()), now()
        )::public.knowledge_nodes
        order by (p.node).external_id
    ) into resolved
    from placed as p;

    select r.external_id, d.item, coalesce(d.parent, (d.node).parent_id::text) as parent
    into orphan
    from unnest(resolved) as r
    join unnest(drafts) as d on (d.node).external_id = r.external_id
    where r.parent_id < 0
    order by d.item
    limit 1;
    if orphan.item is not null then
        raise exception 'node % ("%") names parent "%", which this tenant does not have',
            orphan.item, orphan.external_id, orphan.parent
            using errcode = 'foreign_key_violation', hint = 'Nothing of this batch was stored.';
    end if;
    return resolved;
end
$$;

comment on function contextforge.resolve_drafts(
    contextforge.node_draft[], public.knowledge_nodes[], regconfig
) is
'Drafts as complete rows: ids kept or new, parents found in the batch or the tenant, lexemes '
'made where the text is new.';

revoke all on function contextforge.resolve_drafts(
    contextforge.node_draft[], public.knowledge_nodes[], regconfig
) from public;
grant execute on function contextforge.resolve_drafts(
    contextforge.node_draft[], public.knowledge_nodes[], regconfig
) to contextforge_api;
