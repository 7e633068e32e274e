create or replace function contextforge.calibrate(
    cosine double precision,
    raw_cosines double precision[],
    calibrated_cosines double precision[]
)
returns double precision
language sql
immutable
parallel safe
return case
    when coalesce(cardinality(raw_cosines), 0) = 0 then cosine
    when cosine <= raw_cosines[1] then calibrated_cosines[1]
    when cosine >= raw_cosines[cardinality(raw_cosines)]
        then calibrated_cosines[cardinality(raw_cosines)]
    else
        calibrated_cosines[width_bucket(cosine, raw_cosines)]
        + (cosine - raw_cosines[width_bucket(cosine, raw_cosines)])
        * (
            calibrated_cosines[width_bucket(cosine, raw_cosines) + 1]
            - calibrated_cosines[width_bucket(cosine, raw_cosines)]
        )
        / (
            raw_cosines[width_bucket(cosine, raw_cosines) + 1]
            - raw_cosines[width_bucket(cosine, raw_cosines)]
        )
end;

comment on function contextforge.calibrate(
    double precision, double precision[], double precision[]
) is
'A cosine on the calibrated scale of its embedder: linear between the profile''s points, flat '
'beyond them, unchanged where there are none.';

revoke all on function contextforge.calibrate(
    double precision, double precision[], double precision[]
) from public;
grant execute on function contextforge.calibrate(
    double precision, double precision[], double precision[]
) to contextforge_api, contextforge_analyst;
