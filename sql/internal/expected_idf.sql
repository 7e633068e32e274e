create or replace function contextforge.expected_idf(
    tenant_ids text[],
    query_text text,
    lang text,
    lexemes text[],
    idfs double precision[],
    frequencies bigint[]
)
returns double precision
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    expected text[];
begin
    if 0 = any(frequencies) then
        expected := contextforge.query_lexemes(tenant_ids, query_text, lang, true);
    end if;
    return (
        select sum(t.idf order by t.lexeme)
        from unnest(lexemes, idfs, frequencies) as t (lexeme, idf, documents)
        left join unnest(expected) as e (lexeme) on e.lexeme = t.lexeme
        where t.documents > 0 or e.lexeme is not null
    );
end
$$;

comment on function contextforge.expected_idf(
    text[], text, text, text[], double precision[], bigint[]
) is
'Sum of the idf of the terms a node can be expected to hold. What only another language makes of '
'the query (its stop words here, say) and no node holds is not among them.';

revoke all on function contextforge.expected_idf(
    text[], text, text, text[], double precision[], bigint[]
) from public;
grant execute on function contextforge.expected_idf(
    text[], text, text, text[], double precision[], bigint[]
) to contextforge_api, contextforge_analyst;
