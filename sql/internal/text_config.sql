create or replace function contextforge.text_config(lang text)
returns regconfig
language sql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select case split_part(lower(lang), '-', 1)
        when 'ar' then 'arabic'
        when 'ca' then 'catalan'
        when 'da' then 'danish'
        when 'de' then 'german'
        when 'el' then 'greek'
        when 'en' then 'english'
        when 'es' then 'spanish'
        when 'eu' then 'basque'
        when 'fi' then 'finnish'
        when 'fr' then 'french'
        when 'ga' then 'irish'
        when 'hi' then 'hindi'
        when 'hu' then 'hungarian'
        when 'hy' then 'armenian'
        when 'id' then 'indonesian'
        when 'it' then 'italian'
        when 'lt' then 'lithuanian'
        when 'nb' then 'norwegian'
        when 'ne' then 'nepali'
        when 'nl' then 'dutch'
        when 'no' then 'norwegian'
        when 'pt' then 'portuguese'
        when 'ro' then 'romanian'
        when 'ru' then 'russian'
        when 'sr' then 'serbian'
        when 'sv' then 'swedish'
        when 'ta' then 'tamil'
        when 'tr' then 'turkish'
        when 'yi' then 'yiddish'
        else 'simple'
    end::regconfig
$$;

comment on function contextforge.text_config(text) is
'The text-search configuration of a language tag such as en or pt-BR: simple where there is none, '
'null for null.';

revoke all on function contextforge.text_config(text) from public;
grant execute on function contextforge.text_config(text)
to contextforge_api, contextforge_analyst;
