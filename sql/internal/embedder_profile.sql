create or replace function contextforge.embedder_profile(embedder_version text)
returns table (raw_cosines double precision[], calibrated_cosines double precision[])
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.raw_cosines, p.calibrated_cosines
    from contextforge.embedder_profiles as p
    where p.embedder_version = embedder_profile.embedder_version
$$;

comment on function contextforge.embedder_profile(text) is
'The calibration of an embedder; no row for one that was never fitted.';

revoke all on function contextforge.embedder_profile(text) from public;
grant execute on function contextforge.embedder_profile(text)
to contextforge_api, contextforge_analyst;
