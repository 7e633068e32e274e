create or replace function contextforge.schema_revision()
returns text
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select v.version_num from contextforge.schema_version as v
$$;

comment on function contextforge.schema_revision() is
'The migration this database is at; the service starts only at the newest it knows.';

revoke all on function contextforge.schema_revision() from public;
grant execute on function contextforge.schema_revision()
to contextforge_api, contextforge_analyst;
