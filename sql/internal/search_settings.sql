-- create or replace cannot change what is returned.
drop function if exists contextforge.search_settings();

create or replace function contextforge.search_settings()
returns table (
    embedding_dim integer,
    exact_limit integer,
    ann_method text,
    ann_search_effort integer,
    prune_from integer,
    ann_operator text
)
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select
        i.embedding_dim, i.exact_limit, i.ann_method, i.ann_search_effort, i.prune_from,
        i.ann_operator
    from contextforge.installation as i
$$;

comment on function contextforge.search_settings() is
'What this installation searches with: stored dimension, up to how many rows the vector leg '
'scans exactly, the kind, effort and operator of its ANN index, and from how '
'many postings on the keyword leg tries to skip common terms.';

revoke all on function contextforge.search_settings() from public;
grant execute on function contextforge.search_settings()
to contextforge_api, contextforge_analyst;
