"""Embedder profiles in the database: shipped, the operator's own, and the same map as in Python."""

from __future__ import annotations

import pytest

from service.db.engine import owner_transaction
from service.db.migrate import downgrade, migrate
from service.db.profiles import StoredProfile, list_profiles, set_profile
from service.embedding import DEFAULT_MODEL, load_embedder
from service.embedding.profile import make_profile
from tests.conftest import MakeDatabase
from tests.live_database import SMALL_DIM, LiveDatabase

SHIPPED = "all-MiniLM-L6-v2@53aa51172d14/384"
BEFORE = "0011"


def find_profile(database: LiveDatabase, version: str) -> StoredProfile | None:
    with owner_transaction(database.admin) as connection:
        found = list_profiles(connection)
    return next((each for each in found if each.embedder_version == version), None)


def test_the_shipped_profile_is_that_of_the_shipped_embedder(database: LiveDatabase):
    assert load_embedder(DEFAULT_MODEL).version == SHIPPED
    shipped = find_profile(database, SHIPPED)
    assert shipped is not None
    profile = make_profile(shipped.raw_cosines, shipped.calibrated_cosines)
    assert profile.calibrate(0.42) == pytest.approx(0.5)
    assert profile.calibrate(0.6) > 0.7


def test_the_database_calibrates_as_python_does(database: LiveDatabase):
    shipped = find_profile(database, SHIPPED)
    assert shipped is not None
    profile = make_profile(shipped.raw_cosines, shipped.calibrated_cosines)
    cosines = [-0.4, 0.0, 0.1, 0.279, 0.35, 0.42, 0.5, 0.6, 0.755, 0.9, 1.0]
    with owner_transaction(database.admin) as connection:
        calibrated = connection.exec_driver_sql(
            "select array_agg(contextforge.calibrate(c, %s, %s) order by c)"
            " from unnest(%s::float[]) as c",
            (list(shipped.raw_cosines), list(shipped.calibrated_cosines), cosines),
        ).scalar_one()
    assert calibrated == pytest.approx([profile.calibrate(cosine) for cosine in cosines])


def test_an_existing_database_gets_the_shipped_profile(make_database: MakeDatabase):
    database = make_database(embedding_dim=None)
    migrate(database.admin, embedding_dim=SMALL_DIM)
    downgrade(database.admin, BEFORE)
    migrate(database.admin, embedding_dim=SMALL_DIM)
    assert find_profile(database, SHIPPED) is not None


def test_a_migration_leaves_the_profile_of_an_operator_alone(database: LiveDatabase):
    with owner_transaction(database.admin) as connection:
        set_profile(connection, SHIPPED, raw_cosines=[0, 1], calibrated_cosines=[0.2, 0.8])
    own = find_profile(database, SHIPPED)
    migrate(database.admin, embedding_dim=SMALL_DIM)
    downgrade(database.admin, BEFORE)
    migrate(database.admin, embedding_dim=SMALL_DIM)
    assert find_profile(database, SHIPPED) == own
