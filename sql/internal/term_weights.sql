create or replace function contextforge.term_weights(tenant_ids text[], lexemes text[])
returns table (
    lexeme text, documents bigint, idf double precision, corpus bigint, average double precision
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    corpus_documents bigint;
    average_length double precision;
begin
    select coalesce(sum(s.documents), 0), sum(s.total_length) / nullif(sum(s.documents), 0)
    into corpus_documents, average_length
    from contextforge.segments as s
    where s.tenant_id = any(tenant_ids);

    return query
    with frequencies as (
        select p.lexeme, sum(p.documents) as documents
        from contextforge.postings as p
        where p.tenant_id = any(tenant_ids) and p.lexeme = any(lexemes)
        group by p.lexeme
    )

    select
        q.lexeme, coalesce(f.documents, 0)::bigint,
        ln(
            1 + (corpus_documents - coalesce(f.documents, 0) + 0.5::double precision)
            / (coalesce(f.documents, 0) + 0.5::double precision)
        ),
        corpus_documents, average_length
    from unnest(lexemes) as q (lexeme)
    left join frequencies as f on f.lexeme = q.lexeme
    order by q.lexeme;
end
$$;

comment on function contextforge.term_weights(text[], text[]) is
'Document frequency and idf = ln(1 + (N - df + 0.5) / (df + 0.5)) of each query term over the '
'named tenants alone, with N and the average length.';

revoke all on function contextforge.term_weights(text[], text[]) from public;
grant execute on function contextforge.term_weights(text[], text[])
to contextforge_api, contextforge_analyst;
