"""contextforge ab on a real database, with a second tenant beside it."""

from __future__ import annotations

import json

import pytest

from tests.command_line import Command
from tests.conftest import MakeTenant

START = ("ab", "start", "--tenant", "acme", "--share", "0.1", "--set", "hybrid_rrf_k=20")


@pytest.fixture
def ab(command: Command, make_tenant: MakeTenant) -> Command:
    make_tenant("acme")
    make_tenant("globex")
    return command


def test_an_experiment_is_started_looked_at_and_stopped(ab: Command):
    started = ab(*START, "--name", "flat", "--json")
    assert started.code == 0, started.err
    [experiment] = started.json
    assert (experiment["name"], experiment["share"], experiment["settings"]) == (
        "flat",
        0.1,
        {"hybrid_rrf_k": 20},
    )
    [running] = ab("ab", "status", "--tenant", "acme", "--json").json
    assert running == experiment
    report = ab("ab", "report", "--tenant", "acme", "--effect", "0.05", "--json").json
    assert (report["a"]["searches"], report["verdict"]) == (0, "undecided")
    [ended] = ab("ab", "stop", "--tenant", "acme", "--json").json
    assert (ended["outcome"], ended["experiment_id"]) == ("stopped", experiment["experiment_id"])


def test_people_get_a_table(ab: Command):
    assert "interleaved" in ab(*START, "--interleave").out
    shown = ab("ab", "report", "--tenant", "acme").out
    assert "answer recall, by feedback" in shown
    assert "b cannot be told from a." in shown


def test_another_tenants_experiment_is_not_there(ab: Command):
    ab(*START)
    assert json.loads(ab("ab", "status", "--tenant", "globex", "--json").out) == []
    for what in ("report", "stop"):
        refused = ab("ab", what, "--tenant", "globex")
        assert refused.code == 1
        assert "globex" in refused.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--set", "hybrid_rrf_kk=20"], "Did you mean hybrid_rrf_k"),
        (["--set", "nothing"], "is not NAME=VALUE"),
        (["--set", "hybrid_keyword_weight=0", "--set", "hybrid_vector_weight=0"], "both be 0"),
        (["--set", "hybrid_rrf_k=20", "--share", "1.5"], "between 0 and 1"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_a_reason(
    ab: Command, changes: list[str], message: str
):
    refused = ab("ab", "start", "--tenant", "acme", "--share", "0.1", *changes)
    assert refused.code != 0
    assert message in refused.err


def test_a_second_experiment_waits_for_the_first(ab: Command):
    ab(*START)
    refused = ab(*START)
    assert refused.code == 1
    assert "still running" in refused.err
