"""Experiments on live traffic: what is recorded, reported, and stopped by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from uuid import UUID, uuid4

import numpy as np
import pytest
from fastapi.testclient import TestClient

from service.db.engine import owner_transaction, tenant_transaction
from service.db.experiments import (
    end_experiment,
    find_running,
    read_experiment,
    read_searches,
    start_experiment,
)
from service.db.feedback import Feedback, ShownPlace, store_feedback
from service.db.traces import StoredTrace, store_traces
from service.errors import Conflict, NotFound, SettingsError
from service.quality.comparison import compare_variants
from service.quality.experiments import begin_experiment, roll_back_if_worse
from service.settings import Settings
from service.types import Experiment, Variant
from tests.api.conftest import MakeKey, Tenant, app_for
from tests.click_model import SHOWN, World, click
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase

ALMOST_ALL = 1 - 1e-12


def begin(database: LiveDatabase, tenant: str = "acme", **changes: object) -> Experiment:
    values = {"name": "try", "share": 0.5, "settings": {"hybrid_rrf_k": "5"}, **changes}
    with owner_transaction(database.admin) as connection:
        return begin_experiment(connection, tenant, **values)  # type: ignore[arg-type]


def live_through(
    database: LiveDatabase,
    experiment: Experiment,
    *,
    a: World,
    b: World,
    searches: int,
    callers: int = 50,
    seed: int = 1,
) -> None:
    """Write what so many searches of each variant would leave, and the clicks on them."""
    chance = np.random.default_rng(seed)
    made = [
        _search(experiment, variant, chance, world=world, caller=f"{number % callers}")
        for number in range(searches)
        for variant, world in (("a", a), ("b", b))
    ]
    with tenant_transaction(database.engine, [experiment.tenant_id]) as connection:
        store_traces(connection, experiment.tenant_id, traces=[trace for trace, _ in made])
        for trace, clicked in made:
            for position in clicked:
                place = ShownPlace(trace.trace_id, trace.node_ids[position - 1], position)
                given = Feedback(uuid4(), place, "k", caller=trace.caller, signal="clicked")
                store_feedback(connection, experiment.tenant_id, feedback=given)


def _search(
    experiment: Experiment,
    variant: str,
    chance: np.random.Generator,
    *,
    world: World,
    caller: str,
) -> tuple[StoredTrace, Sequence[int]]:
    taken = world.milliseconds * float(chance.lognormal(0, 0.4))
    trace = StoredTrace(
        trace_id=uuid4(),
        kind="search",
        key_id="k",
        caller=caller,
        query_sha256=sha256(chance.bytes(8)).digest(),
        settings={},
        node_ids=list(range(1, SHOWN + 1)),
        scores=[0.5] * SHOWN,
        timings={"total": taken},
        experiment_id=experiment.experiment_id,
        variant="a" if variant == "a" else "b",
        created_at=datetime.now(UTC),
    )
    return trace, click(chance, world)


def compare(database: LiveDatabase, experiment: Experiment, *, most_per_caller: int = 1000):
    with tenant_transaction(database.engine, [experiment.tenant_id]) as connection:
        tried = read_searches(
            connection,
            experiment.tenant_id,
            experiment_id=experiment.experiment_id,
            most_per_caller=most_per_caller,
        )
    return compare_variants(experiment, tried)


def read_variant(tenant: Tenant, query: str, caller: str = "me") -> tuple[Variant | None, int]:
    """Search, and return the variant on record with the setting that is tried."""
    found = tenant.post("/v1/search", {"query": query}, headers={"X-Caller": caller}).json()
    trace = tenant.get(f"/v1/traces/{found['trace_id']}").json()
    return trace["variant"], trace["settings"]["rrf_k"]


# --- traffic -------------------------------------------------------------------------------------


def test_a_share_of_the_searches_tries_the_settings_and_says_so(
    acme: Tenant, globex: Tenant, database: LiveDatabase
):
    begin(database)
    seen = {query: read_variant(acme, query) for query in map(str, range(12))}
    assert set(seen.values()) == {("a", 60), ("b", 5)}
    assert {query: read_variant(acme, query) for query in list(seen)[:4]}.items() <= seen.items()
    assert read_variant(globex, "0") == (None, 60)


def test_an_interleaved_list_names_the_variant_of_each_node(acme: Tenant, database: LiveDatabase):
    experiment = begin(
        database, share=ALMOST_ALL, interleaved=True, settings={"hybrid_keyword_weight": 0}
    )
    found = acme.search("When is a parcel delivered?")
    trace = acme.get(f"/v1/traces/{found['trace_id']}").json()
    assert trace["variant"] == "interleaved"
    assert {hit["team"] for hit in trace["hits"]} == {"a", "b"}
    last = trace["hits"][-1]
    given = {"trace_id": found["trace_id"], "signal": "clicked", "node_id": last["node_id"]}
    assert acme.post("/v1/feedback", given).status_code == 201
    signs = compare(database, experiment).signs
    assert signs is not None
    assert (signs.wins_a, signs.wins_b) == ((1, 0) if last["team"] == "a" else (0, 1))


def test_a_failure_counts_for_the_variant_it_would_have_been(acme: Tenant, database: LiveDatabase):
    experiment = begin(database, share=ALMOST_ALL)
    with database.admin.begin() as connection:
        connection.exec_driver_sql("alter function hybrid_search_nodes rename to gone")
    assert acme.post("/v1/search", {"query": "parcel"}).status_code == 500
    acme.get(f"/v1/traces/{UUID(int=1)}")  # waits until it is written
    found = compare(database, experiment)
    assert (found.b.searches, found.b.errors, found.a.searches) == (1, 1, 0)


# --- reports -------------------------------------------------------------------------------------


def test_a_report_finds_the_planted_better_variant_of_one_tenant_alone(
    database: LiveDatabase, make_tenant: MakeTenant
):
    acme, globex = (begin(database, make_tenant(name)) for name in ("acme", "globex"))
    same, better = World(first=0.3), World(first=0.6)
    live_through(database, acme, a=same, b=better, searches=400)
    live_through(database, globex, a=same, b=same, searches=100)
    found, other = compare(database, acme), compare(database, globex)
    assert (found.verdict, found.a.searches, found.b.searches) == ("better", 400, 400)
    assert found.b.mrr is not None
    assert found.a.mrr is not None
    assert found.b.mrr > found.a.mrr
    assert (other.verdict, other.a.searches) == ("undecided", 100)
    with tenant_transaction(database.engine, ["globex"]) as connection:
        foreign = read_searches(
            connection, "acme", experiment_id=acme.experiment_id, most_per_caller=1000
        )
    assert foreign.searches == ()


def test_one_caller_counts_so_often_and_no_more(database: LiveDatabase, make_tenant: MakeTenant):
    experiment = begin(database, make_tenant("acme"))
    live_through(database, experiment, a=World(), b=World(), searches=30, callers=1)
    found = compare(database, experiment, most_per_caller=10)
    assert (found.a.searches, found.b.searches, found.left_out) == (10, 10, 40)


# --- stopping ------------------------------------------------------------------------------------


def test_a_rise_of_latency_rolls_back_in_the_background_and_the_next_search_is_a(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
):
    names = [make_tenant("acme"), make_tenant("globex")]
    with TestClient(app_for(database, ab_check_seconds=0)) as client:
        acme, globex = (Tenant(name, make_key(name), client) for name in names)
        ours, theirs = (begin(database, name, share=ALMOST_ALL) for name in names)
        live_through(database, ours, a=World(), b=World(milliseconds=15), searches=150)
        live_through(database, theirs, a=World(), b=World(), searches=150)
        assert read_variant(acme, "parcel")[0] == "b"
        acme.get(f"/v1/traces/{UUID(int=1)}")  # waits until the look is over
        assert read_variant(acme, "parcel") == (None, 60)
        assert read_variant(globex, "parcel")[0] == "b"
        figures = client.app.state.services.metrics.render().decode()  # type: ignore[attr-defined]
        assert "contextforge_experiments_rolled_back_total 1.0" in figures
    with tenant_transaction(database.engine, ["acme"]) as connection:
        ended = read_experiment(connection, "acme", name="try")
    assert ended.outcome == "rolled_back"
    assert ended.reason is not None
    assert "p95 latency rose" in ended.reason


def test_harm_of_another_tenant_stops_nothing_here(database: LiveDatabase, make_tenant: MakeTenant):
    acme, globex = (begin(database, make_tenant(name)) for name in ("acme", "globex"))
    live_through(database, globex, a=World(), b=World(milliseconds=30), searches=120)
    with tenant_transaction(database.engine, ["acme"]) as connection:
        assert roll_back_if_worse(connection, "acme", settings=Settings()) is None
        assert find_running(connection, "acme") == acme
        assert find_running(connection, "globex") is None  # not to be seen from here
        assert not end_experiment(
            connection,
            "globex",
            experiment_id=globex.experiment_id,
            outcome="stopped",
            reason=None,
        )


# --- starting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{"hybrid_rrf_kk": "5"}, {"hybrid_rrf_k": "many"}, {"database_url": "x"}]
)
def test_an_experiment_needs_settings_that_a_tenant_may_have(
    database: LiveDatabase, make_tenant: MakeTenant, settings: dict[str, str]
):
    with pytest.raises(SettingsError):
        begin(database, make_tenant("acme"), settings=settings)


def test_a_tenant_has_one_experiment_at_a_time(database: LiveDatabase, make_tenant: MakeTenant):
    first = begin(database, make_tenant("acme"))
    assert first.settings == {"hybrid_rrf_k": 5}
    with pytest.raises(Conflict):
        begin(database, "acme")
    assert begin(database, make_tenant("globex")).tenant_id == "globex"
    with pytest.raises(NotFound), owner_transaction(database.admin) as connection:
        start_experiment(connection, "nobody", name="try", share=0.5, settings={"x": 1})
