"""The commands that keep search in shape: contextforge maintain and contextforge index."""

from __future__ import annotations

import pytest

from service.db.ann_index import tune_ann_index
from service.db.engine import owner_transaction
from tests.command_line import Command
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent
from tests.sql.search_corpus import random_vectors


def fill(tenant: str, upsert: Upsert, make_node: MakeNode, *, rows: int = 400) -> None:
    """Store nodes with vectors, in eight segments."""
    vectors = random_vectors(rows)
    for start in range(0, rows, rows // 8):
        places = range(start, min(rows, start + rows // 8))
        nodes = [make_node(str(place), f"boat {place}") for place in places]
        upsert(tenant, nodes, embeddings=[vectors[place] for place in places])


def lower_exact_limit(database: LiveDatabase) -> None:
    with owner_transaction(database.admin) as connection:
        tune_ann_index(connection, exact_limit=100)


# --- maintain -------------------------------------------------------------------------------


def test_maintain_folds_segments_and_indexes_vectors_of_every_tenant(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    acme, globex = make_tenant("acme"), make_tenant("globex")
    lower_exact_limit(database)
    fill(acme, upsert, make_node)
    upsert(globex, [make_node("a", "boat")], embeddings=[random_vectors(1)[0]])

    first = command("maintain", "--json")
    assert (first.code, first.err, first.json) == (
        0,
        "",
        [
            {
                "tenant_id": "acme",
                "segments_folded": 8,
                "vectors_indexed": 400,
                "ranks_computed": True,
                "jobs_pruned": 0,
                "traces_pruned": 0,
                "experiment_rolled_back": False,
            },
            {
                "tenant_id": "globex",
                "segments_folded": 0,
                "vectors_indexed": 0,
                "ranks_computed": True,
                "jobs_pruned": 0,
                "traces_pruned": 0,
                "experiment_rolled_back": False,
            },
        ],
    )
    again = command("maintain", "--json").json
    assert [(row["segments_folded"], row["vectors_indexed"]) for row in again] == [(0, 0)] * 2
    assert_consistent(database, acme, globex)


def test_maintain_drops_dead_postings_and_everything_folds_all(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    tenant = make_tenant("acme")
    upsert(tenant, [make_node("a", "red apples"), make_node("b", "green pears")])
    upsert(tenant, [make_node("c", "blue plums")])
    assert command("maintain", "--json").json[0]["segments_folded"] == 0
    assert command("maintain", "--everything", "--json").json[0]["segments_folded"] == 2
    upsert(tenant, [make_node("a", "other words"), make_node("b", "than before")])
    assert command("maintain", "--json").json[0]["segments_folded"] == 2
    assert_consistent(database, tenant)


def test_maintain_of_one_tenant_leaves_the_others_alone(
    command: Command, make_tenant: MakeTenant, upsert: Upsert, make_node: MakeNode
):
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        fill(tenant, upsert, make_node, rows=16)
    shown = command("maintain", "--tenant", "acme")
    assert shown.code == 0
    assert "acme" in shown.out
    assert "globex" not in shown.out
    assert command("maintain", "--tenant", "globex", "--json").json[0]["segments_folded"] == 8


def test_maintain_of_a_tenant_that_is_not_there_is_an_error(command: Command):
    result = command("maintain", "--tenant", "nobody")
    assert (result.code, result.out, result.err) == (1, "", 'error: There is no tenant "nobody".\n')


def test_a_tenant_without_nodes_has_nothing_to_maintain(command: Command, make_tenant: MakeTenant):
    make_tenant("acme")
    nothing = {
        "tenant_id": "acme",
        "segments_folded": 0,
        "vectors_indexed": 0,
        "ranks_computed": True,
        "jobs_pruned": 0,
        "traces_pruned": 0,
        "experiment_rolled_back": False,
    }
    assert command("maintain", "--tenant", "acme", "--json").json == [nothing]


# --- index ----------------------------------------------------------------------------------


def test_index_shows_what_is_in_use(command: Command):
    shown = command("index", "--json").json
    assert shown.pop("index_bytes") > 0
    assert shown == {
        "method": "hnsw",
        "options": "m=24, ef_construction=128",
        "search_effort": 800,
        "exact_limit": 20000,
        "rows": 0,
        "comparisons": [],
    }
    assert "hnsw" in command("index").out


def test_index_switches_to_ivfflat_and_back(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    lower_exact_limit(database)
    fill(make_tenant("acme"), upsert, make_node)
    command("maintain")
    for arguments, expected in (
        ("--type ivfflat --lists auto", ("ivfflat", "lists=20", 4)),
        ("--probes 9", ("ivfflat", "lists=20", 9)),
        ("--type ivfflat --lists 10 --probes 3", ("ivfflat", "lists=10", 3)),
        ("--type hnsw --m 8 --ef-construction 32", ("hnsw", "m=8, ef_construction=32", 800)),
        ("--ef-search 300", ("hnsw", "m=8, ef_construction=32", 300)),
        ("--type hnsw", ("hnsw", "m=24, ef_construction=128", 800)),
    ):
        result = command("index", *arguments.split(), "--accept-changes", "--json")
        assert (result.code, result.err) == (0, "")
        assert [each["questions"] for each in result.json["comparisons"]] == [200]
        shown = result.json
        assert (shown["method"], shown["options"], shown["search_effort"]) == expected
        assert (shown["rows"], shown["exact_limit"]) == (400, 100)


def test_index_refuses_what_finds_less_shows_the_figures_and_drops_it_when_told(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    lower_exact_limit(database)
    fill(make_tenant("acme"), upsert, make_node, rows=1600)
    command("maintain")
    poor = ("index", "--type", "ivfflat", "--lists", "160", "--probes", "1")
    refused = command(*poor)
    assert (refused.code, refused.out) == (1, "")
    assert "acme: recall falls from 1.000 to 0." in refused.err
    assert "--accept-changes" in refused.err
    assert command("index", "--json").json["method"] == "hnsw"

    accepted = command(*poor, "--accept-changes")
    assert accepted.code == 0
    assert "recall 1.000 -> 0." in accepted.out
    assert "compared on 200 stored vectors" in accepted.out
    assert command("index", "--abort", "--json").json["method"] == "ivfflat"


def test_the_exact_limit_is_tuned_alone(command: Command):
    shown = command("index", "--exact-limit", "5000", "--json").json
    assert (shown["exact_limit"], shown["search_effort"]) == (5000, 800)


def test_ivfflat_on_an_empty_index_is_refused_with_the_way_out(command: Command):
    result = command("index", "--type", "ivfflat", "--exact-limit", "7")
    assert (result.code, result.out) == (1, "")
    assert "contextforge maintain" in result.err
    assert command("index", "--json").json["exact_limit"] == 20000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--type hnsw --m 1", "m 1 "),
        ("--type hnsw --m 80", "ef_construction 128"),
        ("--type hnsw --ef-search 0", "ef_search is from 1 to 1000, not 0"),
        ("--type hnsw --probes 4", "use --ef-search"),
        ("--type ivfflat --ef-search 4", "use --probes"),
        ("--type ivfflat --lists 0", "not 0"),
        ("--type ivfflat --lists many", "whole number"),
        ("--type ivfflat --m 8", "add --type hnsw"),
        ("--m 8", "add --type hnsw"),
        ("--lists 8", "add --type ivfflat"),
        ("--probes 8", "use --ef-search"),
        ("--ef-search 0", "not 0"),
        ("--ef-search 1001", "not 1001"),
    ],
)
def test_what_would_be_impossible_or_ignored_is_refused(
    command: Command, arguments: str, message: str
):
    result = command("index", *arguments.split())
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert message in result.err


@pytest.mark.parametrize("arguments", ["--type flat", "--exact-limit -1", "--m few"])
def test_wrong_usage_of_index_is_code_two(command: Command, arguments: str):
    assert command("index", *arguments.split()).code == 2
