"""What the search tests share: short texts of our own, vectors, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from service.db.engine import open_engine, plain_transaction, tenant_transaction
from service.types import Vector
from tests.live_database import SMALL_DIM, LiveDatabase

TEXTS = (
    "The harbour master counts every boat before the evening tide.",
    "A boat without lights may not leave the harbour at night.",
    "Fresh bread needs flour, water, salt and a warm night.",
    "The baker sells bread and rolls until the flour is gone.",
    "Salt water ruins an engine within one winter.",
    "An engine that starts in winter was cared for in summer.",
    "The tide table hangs beside the door of the office.",
    "Office doors close at six, the harbour gate at ten.",
    "Ten apples and two pears fill a small basket.",
    "Apples keep longer than pears when the cellar is cold.",
    "Cold cellars keep cheese, apples and old letters.",
    "Old letters from the captain were found in a cheese box.",
    "The captain writes letters only when the sea is calm.",
    "A calm sea and a full moon make for an easy crossing.",
    "The crossing takes four hours with a good engine.",
    "Four hours of rain filled every barrel in the garden.",
    "The garden wall keeps the wind away from the roses.",
    "Roses and beans grow badly in salty wind.",
    "Beans, bread and cheese: the sailor eats the same each day.",
    "Each day the sailor paints another part of the boat.",
    "Blue paint dries slowly when rain is near.",
    "Rain again, and again the roof of the shed is leaking.",
    "The shed holds paint, rope, nails and three broken oars.",
    "Rope and nails are sold by weight in the shop.",
    "The shop opens when the owner wakes, not before.",
    "The owner of the mill is the brother of the baker.",
    "A mill needs wind or water, and somebody to pay for it.",
    "Nobody pays for wind, and everybody pays for flour.",
    "Flour dust burns: no open light is allowed in the mill.",
    "The light of the tower turns twelve times a minute.",
    "Twelve steps lead up to the door of the tower.",
    "The tower keeper reads the barometer and writes it down.",
    "A falling barometer sends every boat back to the harbour.",
    "Boats, boats, boats: the painter sees nothing else.",
    "The painter lives above the shop and pays in pictures.",
    "Pictures of roses sell better than pictures of engines.",
    "The teacher buys pictures, ink and a new map each year.",
    "The map shows rocks that no sailor has ever seen.",
    "Rocks and sand move under the tide from year to year.",
    "Sand in the engine is worse than water in the fuel.",
    "Fuel is delivered on Monday, letters on Tuesday and Friday.",
    "On Friday the market sells fish, beans and wool.",
    "Wool from the island is warm but smells of sheep.",
    "Sheep cross the road whenever the bus is late.",
    "The late bus carries the doctor and the mail.",
    "The doctor rows to the island when the bus is full.",
    "A full basket of fish costs less than the basket.",
    "Fish swim deep in winter and near the rocks in summer.",
    "Summer guests rent the rooms with a view of the sea.",
    "A room with a view costs twice as much as a warm one.",
    "Warm rooms, dry socks and hot soup: the doctor's advice.",
    "Hot soup is served in the tower on stormy nights.",
    "Stormy nights bring driftwood, and driftwood brings fires.",
    "The fire brigade has one pump and eleven volunteers.",
    "Volunteers clean the beach before the summer guests come.",
    "The beach is closed while the turtles lay their eggs.",
    "Eggs, flour and milk become a cake on Sunday.",
    "On Sunday the bell rings and the engine rests.",
    "The bell was cast from the anchor of a lost ship.",
    "A lost ship is remembered on the wall beside the gate.",
)


def vector(*values: float, dim: int = SMALL_DIM) -> Vector:
    """The vector with these first values and zeros after them."""
    return np.array([*values, *[0.0] * (dim - len(values))], np.float32)


def at_cosine(cosine: float) -> Vector:
    """A unit vector with this cosine to vector(1)."""
    return vector(cosine, (1 - cosine**2) ** 0.5)


def random_vectors(count: int, *, dim: int = SMALL_DIM, seed: int = 7) -> NDArray[np.float32]:
    """As many vectors, the same ones for the same seed."""
    return np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)


@contextmanager
def searching(database: LiveDatabase, *tenants: str) -> Iterator[Connection]:
    """A transaction of the service for these tenants."""
    with tenant_transaction(database.engine, tenants) as connection:
        yield connection


@contextmanager
def engine_of(database: LiveDatabase, login: str) -> Iterator[Engine]:
    """An engine for a login of its own; closed at the end."""
    engine = open_engine(database.url_for(login))
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def logged_in(database: LiveDatabase, login: str) -> Iterator[Connection]:
    """A transaction of an analyst; each failing statement needs one of its own."""
    with engine_of(database, login) as engine, plain_transaction(engine) as connection:
        yield connection


def wait_for_locks(database: LiveDatabase, count: int) -> None:
    """Return once so many sessions of this database wait for a lock."""
    deadline = monotonic() + 10
    while monotonic() < deadline:
        # A transaction each: within one, the view does not change.
        with database.admin.begin() as connection:
            waiting = connection.exec_driver_sql(
                "select count(*) from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock'"
            ).scalar_one()
        if waiting >= count:
            return
        sleep(0.02)
    raise TimeoutError(f"fewer than {count} sessions wait for a lock")
