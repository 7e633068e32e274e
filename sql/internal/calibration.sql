create or replace function contextforge.calibration(tenant_ids text[])
returns table (raw_cosines double precision[], calibrated_cosines double precision[])
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select p.raw_cosines, p.calibrated_cosines
    from (
        select max(t.embedder_version) as version
        from contextforge.tenant_profiles as t
        where t.tenant_id = any(tenant_ids)
        having count(distinct coalesce(t.embedder_version, '')) = 1
    ) as v
    cross join lateral contextforge.embedder_profile(v.version) as p;
end
$$;

comment on function contextforge.calibration(text[]) is
'The profile of the one embedder these tenants share; no row where they differ, or it has none.';

revoke all on function contextforge.calibration(text[]) from public;
grant execute on function contextforge.calibration(text[])
to contextforge_api, contextforge_analyst;
