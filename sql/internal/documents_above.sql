create or replace function contextforge.documents_above(
    tenant_ids text[],
    terms text[],
    weights double precision[],
    left_over double precision[],
    essential integer,
    flat double precision,
    slope double precision,
    least_total double precision,
    at_most bigint
)
returns table (doc_id integer, total double precision)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_custom_plan
set work_mem = '64MB'
-- See best_by_terms.
set enable_sort = off
set enable_nestloop = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    doc_ids integer[];
    totals double precision[];
    list record;
begin
    select array_agg(c.doc_id), array_agg(c.total) into doc_ids, totals
    from (
        select
            (e.posting >> 30)::integer as doc_id,
            sum(contextforge.posting_score(e.posting, e.weight, flat, slope)) as total
        from (
            select w.weight, unnest(p.packed) as posting
            from unnest(terms[:essential], weights[:essential]) as w (lexeme, weight)
            join contextforge.postings as p
                on p.tenant_id = any(tenant_ids) and p.lexeme = w.lexeme
            where p.lexeme = any(terms[:essential])
        ) as e
        group by 1
    ) as c
    where c.total >= least_total - left_over[essential];

    for place in essential + 1 .. cardinality(terms) loop
        if cardinality(doc_ids) > at_most then
            return;
        end if;
        for list in
            -- Put together with nothing, a list is in memory whole, and not fetched at each look.
            select p.packed || '{}'::bigint[] as packed
            from contextforge.postings as p
            where p.tenant_id = any(tenant_ids) and p.lexeme = terms[place]
        loop
            totals := array(
                select
                    d.total + case
                        when d.posting >> 30 = d.doc_id
                            then contextforge.posting_score(
                                d.posting, weights[place], flat, slope
                            )
                        else 0
                    end
                from (
                    select
                        u.doc_id, u.total,
                        list.packed[
                            width_bucket(((u.doc_id::bigint + 1) << 30) - 1, list.packed)
                        ] as posting
                    from unnest(doc_ids, totals) as u (doc_id, total)
                    offset 0
                ) as d
            );
        end loop;
        select array_agg(u.doc_id), array_agg(u.total) into doc_ids, totals
        from unnest(doc_ids, totals) as u (doc_id, total)
        where u.total >= least_total - left_over[place];
    end loop;

    return query select d.doc_id, d.total from unnest(doc_ids, totals) as d (doc_id, total);
end
$$;

comment on function contextforge.documents_above(
    text[], text[], double precision[], double precision[], integer, double precision,
    double precision, double precision, bigint
) is
'Documents, dead ones too, whose terms add up to at least a total. The first terms are read whole; '
'in the others, sorted by document, only what can still get there is looked up. Nothing where more '
'than so many would have to be: reading all is cheaper then.';

revoke all on function contextforge.documents_above(
    text[], text[], double precision[], double precision[], integer, double precision,
    double precision, double precision, bigint
) from public;
grant execute on function contextforge.documents_above(
    text[], text[], double precision[], double precision[], integer, double precision,
    double precision, double precision, bigint
) to contextforge_api, contextforge_analyst;
