"""contextforge stats and contextforge audit."""

from __future__ import annotations

from service.db.ann_index import IvfflatOptions, build_ann_index, tune_ann_index
from service.db.engine import owner_transaction
from service.db.maintenance import refresh_ann
from tests.command_line import Command
from tests.conftest import MakeNode, MakeTenant, Upsert
from tests.live_database import LiveDatabase
from tests.sql.search_corpus import random_vectors

ROWS = 1600


def fill(tenant: str, upsert: Upsert, make_node: MakeNode, *, rows: int) -> None:
    nodes = [make_node(str(place), f"boat {place}") for place in range(rows)]
    upsert(tenant, nodes, embeddings=list(random_vectors(rows)))


def test_stats_of_all_tenants_or_of_one_with_growth_between_marks(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    fill(make_tenant("acme"), upsert, make_node, rows=10)
    fill(make_tenant("globex"), upsert, make_node, rows=3)
    command("maintain")
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("update size_marks set marked_on = marked_on - 7")
    fill("acme", upsert, make_node, rows=14)
    command("maintain")

    acme, globex = command("stats", "--json").json
    assert (acme["tenant_id"], globex["tenant_id"]) == ("acme", "globex")
    assert (acme["stored"]["nodes"], globex["stored"]["nodes"]) == (14, 3)
    assert (acme["growth"]["nodes"], globex["growth"]["nodes"]) == (4, 0)
    assert acme["bytes"] > globex["bytes"] > 0
    assert acme["traffic"]["total"]["searches"] == 0

    shown = command("stats", "--tenant", "acme", "--hours", "2").out
    assert shown.startswith("acme, last 2 h\n")
    assert "+4 nodes" in shown
    assert "globex" not in shown


def test_stats_of_an_unknown_tenant_are_refused(command: Command):
    result = command("stats", "--tenant", "nobody")
    assert (result.code, result.out) == (1, "")
    assert '"nobody"' in result.err


def test_audit_says_what_the_index_misses_and_what_to_do(
    command: Command,
    database: LiveDatabase,
    make_tenant: MakeTenant,
    upsert: Upsert,
    make_node: MakeNode,
):
    fill(make_tenant("acme"), upsert, make_node, rows=ROWS)
    fill(make_tenant("tiny"), upsert, make_node, rows=30)
    with owner_transaction(database.admin) as connection:
        tune_ann_index(connection, exact_limit=100)
        refresh_ann(connection, "acme", max_rows=ROWS)
    good = command("audit", "--tenant", "acme", "--questions", "30")
    assert (good.code, good.err) == (0, "")
    assert "acme: recall 1.000 on 30 vectors, searched by hnsw" in good.out

    build_ann_index(database.admin, IvfflatOptions(lists=160), search_effort=1)
    poor = command("audit", "--tenant", "acme", "--json")
    assert poor.code == 1
    assert poor.json["recall"] < 0.95
    assert "contextforge index --ef-search" in poor.err
    tiny = command("audit", "--tenant", "tiny")
    assert (tiny.code, tiny.out) == (0, "tiny is searched exactly: there is nothing to audit.\n")
    assert command("audit", "--tenant", "nobody").code == 1
