create or replace function contextforge.check_nodes(
    nodes jsonb, embeddings vector[], expected_dim integer
)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set work_mem = '64MB'
as $$
declare
    bad record;
    known_keys constant text[] := array[
        'external_id', 'node_type', 'title', 'summary', 'content', 'metadata', 'parent',
        'parent_id', 'section_path', 'order_index', 'header', 'doc_title', 'url', 'lang',
        'space_id', 'acl', 'token_count', 'searchable'
    ];
begin
    if nodes is null or jsonb_typeof(nodes) <> 'array' then
        raise exception 'nodes must be a json array of objects'
            using errcode = 'invalid_parameter_value';
    end if;
    if embeddings is not null and cardinality(embeddings) <> jsonb_array_length(nodes) then
        raise exception '% nodes came with % embeddings',
            jsonb_array_length(nodes), cardinality(embeddings)
            using errcode = 'invalid_parameter_value',
                  hint = 'Give one embedding a node, null for a node without.';
    end if;

    with items as (
        select
            i.item, i.node, i.embedding, i.node ->> 'external_id' as external_id,
            coalesce((i.node ->> 'searchable')::boolean, true) as searchable
        from rows from (jsonb_array_elements(nodes), unnest(embeddings))
            with ordinality as i (node, embedding, item)
    ),

    judged as (
        select
            items.item, items.external_id,
            case
                when jsonb_typeof(items.node) <> 'object' then 'is not a json object'
                when not (items.node ?& array['external_id', 'node_type'])
                    or coalesce(items.external_id, '') = ''
                    or coalesce(items.node ->> 'node_type', '') = ''
                    then 'needs a non-empty external_id and node_type'
                when items.node - known_keys <> '{}'
                    then 'has an unknown key "'
                        || (select min(k) from jsonb_object_keys(items.node - known_keys) as k)
                        || '"'
                when jsonb_typeof(items.node -> 'metadata') not in ('object', 'null')
                    then 'has metadata that is no json object'
                when items.searchable and octet_length(
                    concat_ws(
                        ' ', items.node ->> 'title', items.node ->> 'summary',
                        items.node ->> 'header', items.node ->> 'content'
                    )
                ) > 1000000 then 'has more than 1,000,000 bytes of searchable text'
                when octet_length(items.node ->> 'content') > 33554432
                    then 'has more than 32 MiB of content'
                when not items.searchable and items.embedding is not null
                    then 'is not searchable, so it takes no embedding'
                when vector_dims(items.embedding) <> expected_dim
                    then format(
                        'has an embedding of %s dimensions where the tenant has %s',
                        vector_dims(items.embedding), expected_dim
                    )
                when vector_norm(items.embedding) = 0
                    then 'has an all-zero embedding, which has no direction'
                when vector_norm(items.embedding) = 'infinity'
                    then 'has an embedding too large to normalise'
                when count(*) over (partition by items.external_id) > 1
                    then 'appears more than once in this batch'
            end as problem
        from items
    )

    select j.item, j.external_id, j.problem into bad
    from judged as j
    where j.problem is not null
    order by j.item
    limit 1;
    if bad.problem is not null then
        raise exception 'node % ("%") %', bad.item, coalesce(bad.external_id, ''), bad.problem
            using errcode = case
                when bad.problem like 'appears more%' then 'unique_violation'
                when bad.problem like 'has more than%' then 'program_limit_exceeded'
                else 'invalid_parameter_value'
            end,
            hint = 'Nothing of this batch was stored.';
    end if;
end
$$;

comment on function contextforge.check_nodes(jsonb, vector[], integer) is
'Raises for the first node of a batch that cannot be stored, naming its place and external_id.';

revoke all on function contextforge.check_nodes(jsonb, vector[], integer) from public;
grant execute on function contextforge.check_nodes(jsonb, vector[], integer) to contextforge_api;
