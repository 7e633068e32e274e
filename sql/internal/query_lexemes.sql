create or replace function contextforge.query_lexemes(
    tenant_ids text[], query_text text, lang text, defaults_only boolean default false
)
returns text[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    configs regconfig[];
begin
    if coalesce(query_text, '') = '' then
        return '{}';
    end if;
    if lang is not null then
        configs := array[contextforge.text_config(lang)];
    else
        configs := array(
            select distinct used.config
            from (
                select p.text_config as config
                from contextforge.tenant_profiles as p
                where p.tenant_id = any(tenant_ids)
                union all
                select unnest(s.text_configs)
                from contextforge.segments as s
                where s.tenant_id = any(tenant_ids) and not defaults_only
            ) as used
        );
    end if;
    -- The cut keeps a query of any size below what a tsvector can hold.
    return array(
        select distinct u.lexeme
        from unnest(configs) as c (config)
        cross join lateral unnest(
            contextforge.index_text(c.config, left(query_text, 200000))
        ) as u
        order by u.lexeme
    );
end
$$;

comment on function contextforge.query_lexemes(text[], text, text, boolean) is
'The lexemes a query is searched by: of the language asked for, or of every text-search '
'configuration the tenants use, or (defaults_only) of those they use where a node says nothing.';

revoke all on function contextforge.query_lexemes(text[], text, text, boolean) from public;
grant execute on function contextforge.query_lexemes(text[], text, text, boolean)
to contextforge_api, contextforge_analyst;
