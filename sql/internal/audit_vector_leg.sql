create or replace function contextforge.audit_vector_leg(
    query_embedding vector,
    tenant_ids text[],
    node_types text[],
    dataset_name text,
    filters jsonb,
    top_k integer
)
returns table (path text, expected integer, found integer)
language plpgsql
stable
parallel unsafe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    -- As deep as a search for so many goes.
    depth constant integer := greatest(100, 5 * top_k);
    kept contextforge.search_filter;
    chosen text;
    exact_scores double precision[];
    index_scores double precision[];
begin
    perform contextforge.check_search(
        null, query_embedding, tenant_ids, top_k, 1, 1, 'rrf', 60, null
    );
    kept := contextforge.parse_filters(tenant_ids, node_types, dataset_name, filters);
    select c.path into chosen from contextforge.choose_vector_path(tenant_ids, kept) as c;
    if chosen = 'exact' then
        return query select chosen, 0, 0;
        return;
    end if;
    exact_scores := array(
        select l.score
        from contextforge.vector_leg(tenant_ids, query_embedding, kept, top_k, 'exact') as l
    );
    index_scores := array(
        select l.score
        from contextforge.vector_leg(tenant_ids, query_embedding, kept, depth, chosen) as l
        limit top_k
    );
    -- By scores and not by ids: of equal vectors either is as good.
    return query
    select
        chosen,
        cardinality(exact_scores),
        least(
            cardinality(exact_scores),
            (
                select count(*)::integer
                from unnest(index_scores) as i (score)
                where i.score >= (select min(e.score) from unnest(exact_scores) as e (score))
            )
        );
end
$$;

comment on function contextforge.audit_vector_leg(
    vector, text[], text[], text, jsonb, integer
) is
'Runs the vector leg as a search does and exactly: how many of the nearest top_k there are, and '
'how many the ANN index found. Path exact, with nothing expected, where no index is used.';

revoke all on function contextforge.audit_vector_leg(
    vector, text[], text[], text, jsonb, integer
) from public;
grant execute on function contextforge.audit_vector_leg(
    vector, text[], text[], text, jsonb, integer
) to contextforge_api;
