create or replace function contextforge.embedding_dim()
returns integer
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select i.embedding_dim from contextforge.installation as i
$$;

comment on function contextforge.embedding_dim() is
'Dimension of every stored embedding, fixed by EMBEDDING_DIM at the first migration.';

revoke all on function contextforge.embedding_dim() from public;
grant execute on function contextforge.embedding_dim()
to contextforge_api, contextforge_analyst;
