"""Profiles of embedders: points that calibrate their cosines; the connection is the owner's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.errors import InvalidInput

_VERSION = re.compile(r".+@.+/(?P<dimension>[1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """A profile as it is stored, and the tenants it counts for."""

    embedder_version: str
    raw_cosines: tuple[float, ...]
    calibrated_cosines: tuple[float, ...]
    fitted_at: datetime | None
    tenants: int


def list_profiles(connection: Connection) -> list[StoredProfile]:
    """Return the profile of every embedder that has one or is some tenant's, in order."""
    rows = connection.exec_driver_sql(
        "select embedder_version, coalesce(p.raw_cosines, '{}'),"
        " coalesce(p.calibrated_cosines, '{}'), p.fitted_at, coalesce(t.tenants, 0)"
        " from contextforge.embedder_profiles as p"
        " full join (select embedder_version, count(*) as tenants"
        " from contextforge.tenant_profiles where embedder_version is not null group by 1) as t"
        " using (embedder_version)"
        " order by embedder_version"
    )
    return [
        StoredProfile(version, tuple(raw), tuple(calibrated), fitted_at, tenants)
        for version, raw, calibrated, fitted_at, tenants in rows
    ]


def set_profile(
    connection: Connection,
    embedder_version: str,
    *,
    raw_cosines: Sequence[float],
    calibrated_cosines: Sequence[float],
) -> None:
    """Store an embedder's profile in place of the one it has; without points it is the identity."""
    named = _VERSION.fullmatch(embedder_version)
    if named is None:
        raise InvalidInput(
            f'"{embedder_version}" is no embedder_version.',
            hint="It reads MODEL@REVISION/DIMENSION: see contextforge tenants list.",
        )
    connection.exec_driver_sql(
        "insert into contextforge.embedder_profiles as p"
        " (embedder_version, dimension, raw_cosines, calibrated_cosines, fitted_at)"
        " values (%s, %s, %s, %s, now())"
        " on conflict (embedder_version) do update set"
        " raw_cosines = excluded.raw_cosines,"
        " calibrated_cosines = excluded.calibrated_cosines, fitted_at = excluded.fitted_at",
        (
            embedder_version,
            int(named["dimension"]),
            list(raw_cosines),
            list(calibrated_cosines),
        ),
    )
