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
    doc_ids integer[];
    totals double precision[];
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

    -- Where much would be read, the best by the rarest terms are scored in full: what the last of
    -- them reaches, the best reach at least. Terms that together cannot add as much stay unread: a
    -- node with none of the others is out, and so is one that would not get there even with all.
    if postings >= (select s.prune_from from contextforge.search_settings() as s) then
        essential := (
            select min(r.place)
            from unnest(read_by) with ordinality as r (postings, place)
            where r.postings >= 4 * depth
        );
        reached := (
            select sum(s.score) * scale
            from contextforge.bm25_scores(
                tenant_ids,
                array(
                    select r.node_id
                    from contextforge.best_by_terms(
                        tenant_ids, terms[:essential], weights[:essential], flat, slope, kept, depth
                    ) as r
                    where read_by[essential] < 0.3 * postings
                ),
                lexemes, idfs, average_length
            ) as s
            group by s.node_id
            order by 1 desc
            offset depth - 1
            limit 1
        );
        essential := (
            select min(l.place)
            from unnest(left_over) with ordinality as l (weight, place)
            where l.weight < reached
        );
        -- Looking a document up in the list of a term costs about as much as scoring a posting.
        select array_agg(d.doc_id), array_agg(d.total) into doc_ids, totals
        from contextforge.documents_above(
            tenant_ids, terms, weights, left_over, essential, flat, slope,
            reached - 1, -- for what rounding may have added
            postings - read_by[essential]
        ) as d
        where read_by[essential] < 0.8 * postings;
    end if;

    return query
    select r.node_id, r.total / scale
    from contextforge.best_live(tenant_ids, doc_ids, totals, kept, depth) as r;
    if not found then
        return query
        select r.node_id, r.total / scale
        from contextforge.best_by_terms(tenant_ids, terms, weights, flat, slope, kept, depth) as r;
    end if;
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
