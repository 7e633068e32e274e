create or replace function contextforge.bm25_leg(
    tenant_ids text[],
    lexemes text[],
    idfs double precision[],
    frequencies bigint[],
    average_length double precision,
    kept contextforge.search_filter,
    depth integer
)
returns table (node_id integer, score double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
as $$
#variable_conflict use_column
declare
    k1 constant double precision := 1.2;
    b constant double precision := 0.75;
    flat constant double precision := k1 * (1 - b);
    slope constant double precision := k1 * b / average_length;
    scale constant double precision := contextforge.bm25_scale(idfs);
    postings constant bigint := (select sum(f) from unnest(frequencies) as f);
    -- Terms and their weights from the rarest on, and sums of both ends.
    terms text[];
    weights double precision[];
    read_by bigint[];
    left_over double precision[];
    essential integer;
    reached double precision;
    survivors integer[];
begin
    if average_length is null or coalesce(postings, 0) = 0 then
        return;
    end if;
    select
        array_agg(t.lexeme order by t.place), array_agg(t.weight order by t.place),
        array_agg(t.read_by order by t.place), array_agg(t.left_over order by t.place)
    into terms, weights, read_by, left_over
    from (
        select
            u.lexeme, u.idf * (k1 + 1) * scale as weight,
            row_number() over (order by u.frequency, u.lexeme) as place,
            sum(u.frequency) over (order by u.frequency, u.lexeme) as read_by,
            coalesce(
                sum(u.idf * (k1 + 1) * scale) over (
                    order by u.frequency desc, u.lexeme desc
                    rows between unbounded preceding and 1 preceding
                ), 0
            ) as left_over
        from unnest(lexemes, idfs, frequencies) as u (lexeme, idf, frequency)
    ) as t;

    -- Where much would be read, the rarest terms tell what the last of the best reaches at least.
    -- If the other terms together cannot add as much, a node with none of the rare ones is out,
    -- and so is one that would not get there even with all the others.
    if postings >= (select s.prune_from from contextforge.search_settings() as s) then
        essential := (
            select coalesce(min(r.place), cardinality(terms))
            from unnest(read_by) with ordinality as r (postings, place)
            where r.postings >= 4 * depth
        );
        for attempt in 1 .. 2 loop
            exit when read_by[essential] > 0.6 * postings;
            select r.total into reached
            from contextforge.best_by_terms(
                tenant_ids, terms[:essential], weights[:essential], flat, slope, kept, depth
            ) with ordinality as r (node_id, total, place)
            where r.place = depth;
            exit when reached is null;
            if left_over[essential] < reached then
                survivors := contextforge.nodes_above(
                    tenant_ids, terms[:essential], weights[:essential], flat, slope, kept,
                    reached - left_over[essential] - 1 -- for what rounding may have added
                );
                exit;
            end if;
            essential := (
                select min(l.place)
                from unnest(left_over) with ordinality as l (weight, place)
                where l.weight < reached
            );
        end loop;
    end if;

    -- Looking a node up costs as much as scoring some fifty postings.
    if survivors is null or cardinality(survivors) > greatest(2 * depth, postings / 50) then
        return query
        select r.node_id, r.total / scale
        from contextforge.best_by_terms(
            tenant_ids, terms, weights, flat, slope, kept, depth
        ) as r;
        return;
    end if;
    return query
    select s.node_id, sum(s.score)
    from contextforge.bm25_scores(tenant_ids, survivors, lexemes, idfs, average_length) as s
    group by s.tenant_id, s.node_id
    order by 2 desc, s.tenant_id, s.node_id
    limit depth;
end
$$;

comment on function contextforge.bm25_leg(
    text[], text[], double precision[], bigint[], double precision, contextforge.search_filter,
    integer
) is
'The best nodes by BM25: sum over terms of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / '
'average length)), k1 = 1.2, b = 0.75; terms are ORed, ties break on node_id. Common terms are '
'read only for nodes that they can still bring among the best (MaxScore).';

revoke all on function contextforge.bm25_leg(
    text[], text[], double precision[], bigint[], double precision, contextforge.search_filter,
    integer
) from public;
grant execute on function contextforge.bm25_leg(
    text[], text[], double precision[], bigint[], double precision, contextforge.search_filter,
    integer
) to contextforge_api, contextforge_analyst;
