create or replace function contextforge.identifier_words(text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    -- The cheap test keeps prose away from the costly pattern. Each hump has two characters or
    -- more, so mRNA and pH stay whole. Underscores need nothing: the parser splits there.
    select case when $1 ~ '[a-z0-9][A-Z]|[A-Z][A-Z][a-z]{2}' then (
        select string_agg(
            regexp_replace(
                regexp_replace(found.identifier, '([a-z0-9])([A-Z])', '\1 \2', 'g'),
                '([A-Z])([A-Z][a-z]{2})', '\1 \2', 'g'
            ),
            ' ' order by found.identifier
        )
        from (
            select distinct m[1] as identifier
            from regexp_matches(
                $1,
                '(?:\m|(?<=_))((?:[A-Z]?[a-z][a-z0-9]+|[A-Z]{2,}(?=[A-Z][a-z]{2}))'
                '(?:[A-Z][a-z0-9]+|[A-Z]{2,}(?![a-z]))+)(?![A-Za-z0-9])',
                'g'
            ) as m
        ) as found
    ) end
$$;

comment on function contextforge.identifier_words(text) is
'The words inside camelCase identifiers of a text: customerEmail gives customer Email. '
'Null where there are none.';

revoke all on function contextforge.identifier_words(text) from public;
grant execute on function contextforge.identifier_words(text)
to contextforge_api, contextforge_analyst;
