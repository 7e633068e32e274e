"""Another model for a tenant: staged beside the old vectors, switched at once, or dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from service import embedding
from service.cli.app import app
from service.db.engine import owner_transaction, tenant_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import delete_nodes, upsert_nodes
from service.db.reembedding import (
    drop_staged_embeddings,
    list_unstaged_nodes,
    stage_embeddings,
    switch_embedder,
)
from service.db.registry import delete_tenant
from service.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.ingestion import reembed
from service.ingestion.convert import NodeGroup
from service.ingestion.ingest import Ingestion
from service.ingestion.reembed import Reembedding, ReembedReport, abort_reembedding
from service.types import NodeDraft, Vector
from tests.conftest import MakeNode, MakeTenant
from tests.live_database import LiveDatabase
from tests.sql.fake_reembedding import (
    FakeEmbedder,
    assert_embedded,
    count,
    count_staged,
    edit,
    find,
    read_profile,
    run_reembedding,
    stage,
)
from tests.sql.recount import snapshot
from tests.sql.search_corpus import TEXTS, searching, wait_for_locks


class Interrupted(Exception):
    """What ends a run in the middle."""


OLD = FakeEmbedder("old", 4)
WriteTexts = Callable[..., list[int]]


@pytest.fixture
def new() -> FakeEmbedder:
    return FakeEmbedder("new", 6)


@pytest.fixture
def tenant(make_tenant: MakeTenant, write: WriteTexts) -> str:
    """A tenant with ten nodes of the old model."""
    write(make_tenant(), TEXTS[:10])
    return "acme"


@pytest.fixture
def other(make_tenant: MakeTenant, write: WriteTexts) -> str:
    """Another one with the same nodes."""
    write(make_tenant("globex"), TEXTS[:10])
    return "globex"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembed, "NODES_AT_ONCE", 4)
    monkeypatch.setattr(reembed, "NODES_AT_THE_SWITCH", 2)


@pytest.fixture
def write(database: LiveDatabase, make_node: MakeNode) -> WriteTexts:
    """write(tenant, texts, embedder): nodes n0, n1, ... with these texts; returns their ids."""

    def run(
        tenant: str, texts: Sequence[str], *, embedder: FakeEmbedder = OLD, mixed: bool = False
    ) -> list[int]:
        nodes = [make_node(f"n{place}", text) for place, text in enumerate(texts)]
        with tenant_transaction(database.engine, [tenant]) as connection:
            made = upsert_nodes(
                connection,
                tenant,
                nodes=nodes,
                embeddings=list(embedder.embed_queries(texts)),
                embedder_version=embedder.version,
                allow_mixed=mixed,
            )
        return [node.node_id for node in made]

    return run


def test_searches_find_the_old_until_the_switch_and_the_new_after_it(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    before, rows = find(database, tenant, OLD, TEXTS[3]), snapshot(database, tenant)

    def look(_: Sequence[str]) -> None:
        assert find(database, tenant, OLD, TEXTS[3]) == before
        assert snapshot(database, tenant) == rows

    new.before = look
    seen: list[tuple[int, int]] = []
    report = Reembedding(database.engine, tenant, new).run(
        on_progress=lambda done, total: seen.append((done, total))
    )

    assert report == ReembedReport(tenant, OLD.version, new.version, 6, embedded=10, switched=10)
    assert seen == [(4, 10), (8, 10), (10, 10)]
    [best, *_] = find(database, tenant, new, TEXTS[3])
    assert best[0] == before[0][0]
    assert best[1] == pytest.approx(1, abs=1e-3)
    with pytest.raises(InvalidInput, match=r"4 dimensions where tenant .* has 6"):
        find(database, tenant, OLD, TEXTS[3])
    assert_embedded(database, tenant, new)


def test_an_interrupted_run_goes_on_where_it_stopped(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    rows = snapshot(database, tenant)

    def interrupt(_: Sequence[str]) -> None:
        if len(new.embedded) == 8:
            raise Interrupted

    new.before = interrupt
    with pytest.raises(Interrupted):
        run_reembedding(database, tenant, new)
    assert snapshot(database, tenant) == rows
    assert count_staged(database, tenant) == 8

    again = FakeEmbedder("new", 6)
    report = run_reembedding(database, tenant, again)

    assert again.embedded == list(TEXTS[8:10])
    assert (report.embedded, report.switched) == (2, 10)
    assert_embedded(database, tenant, new)


@pytest.mark.parametrize("at", [0, 4, 8])
def test_a_node_edited_meanwhile_is_embedded_again(
    tenant: str, database: LiveDatabase, new: FakeEmbedder, at: int
) -> None:
    """At 0 it is in the model's hands, at 4 and 8 it is staged already."""

    def meddle(_: Sequence[str]) -> None:
        if len(new.embedded) == at:
            edit(database, tenant, "n1", "A new text.", OLD)

    new.before = meddle
    run_reembedding(database, tenant, new)

    assert new.embedded == [*TEXTS[:10], "A new text."]
    assert_embedded(database, tenant, new)


def test_an_abort_leaves_all_as_it_was(
    tenant: str, other: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    rows = snapshot(database, tenant)
    for each in (tenant, other):
        with searching(database, each) as connection:
            stage(connection, each, new, max_rows=4)

    assert abort_reembedding(database.engine, tenant) == 4
    assert abort_reembedding(database.engine, tenant) == 0
    assert snapshot(database, tenant) == rows
    assert (count_staged(database, tenant), count_staged(database, other)) == (0, 4)


def test_another_tenant_is_untouched(
    tenant: str, other: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with searching(database, other) as connection:
        stage(connection, other, new, max_rows=4)
    rows, found = snapshot(database, other), find(database, other, OLD, TEXTS[2])

    run_reembedding(database, tenant, new)

    assert snapshot(database, other) == rows
    assert count_staged(database, other) == 4
    assert find(database, other, OLD, TEXTS[2]) == found
    assert_embedded(database, tenant, new)


def test_no_function_works_on_a_tenant_the_caller_may_not_see(
    tenant: str, other: str, database: LiveDatabase
) -> None:
    calls = (
        lambda c: list_unstaged_nodes(c, other, embedder_version="new"),
        lambda c: switch_embedder(c, other, embedder_version="new"),
        lambda c: drop_staged_embeddings(c, other),
        lambda c: stage_embeddings(c, other, nodes=[], embeddings=[], embedder_version="new"),
    )
    for call in calls:
        with pytest.raises(Forbidden), searching(database, tenant) as connection:
            call(connection)
    with pytest.raises(NotFound):
        run_reembedding(database, "nobody", OLD)


def test_nodes_of_another_tenant_are_neither_listed_nor_staged(
    tenant: str, other: str, database: LiveDatabase
) -> None:
    with searching(database, tenant, other) as connection:
        ours = list_unstaged_nodes(connection, tenant, embedder_version="new")
        theirs = list_unstaged_nodes(connection, other, embedder_version="new")
        kept = stage_embeddings(
            connection,
            tenant,
            nodes=theirs,
            embeddings=list(OLD.embed_queries(TEXTS[:10])),
            embedder_version="new",
        )
    assert not {n.node_id for n in ours} & {n.node_id for n in theirs}
    assert (len(ours), len(theirs), kept) == (10, 10, 0)


def test_the_switch_is_refused_while_a_node_has_no_new_embedding(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    rows = snapshot(database, tenant)
    with searching(database, tenant) as connection:
        stage(connection, tenant, new, max_rows=9)

    with (
        pytest.raises(Conflict, match=r"no embedding of .* yet.*contextforge reembed"),
        searching(database, tenant) as connection,
    ):
        switch_embedder(connection, tenant, embedder_version=new.version)
    assert snapshot(database, tenant) == rows
    assert count_staged(database, tenant) == 9


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ([0, 0, 0], "all-zero"),
        ([1, 2], "2 dimensions where the others have 3"),
        ([1, float("nan"), 0], "NaN"),
        ([1] * 9, "9 dimensions where this database holds at most 8"),
    ],
)
def test_what_cannot_be_searched_is_not_staged(
    tenant: str, database: LiveDatabase, second: list[float], problem: str
) -> None:
    given: list[Vector] = [np.array(each, np.float32) for each in ([1, 0, 0], second)]
    with searching(database, tenant) as connection:
        nodes = list_unstaged_nodes(connection, tenant, embedder_version="new", max_rows=2)

    with pytest.raises(InvalidInput, match=problem), searching(database, tenant) as connection:
        stage_embeddings(connection, tenant, nodes=nodes, embeddings=given, embedder_version="new")
    assert count_staged(database, tenant) == 0


def test_a_second_batch_has_the_dimension_of_the_first(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with searching(database, tenant) as connection:
        stage(connection, tenant, new, max_rows=2)
        nodes = list_unstaged_nodes(connection, tenant, embedder_version=new.version, max_rows=1)
    with (
        pytest.raises(InvalidInput, match="5 dimensions where the others have 6"),
        searching(database, tenant) as connection,
    ):
        stage_embeddings(
            connection,
            tenant,
            nodes=nodes,
            embeddings=[np.ones(5, np.float32)],
            embedder_version=new.version,
        )


def test_a_second_model_waits_until_the_first_is_finished_or_dropped(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with searching(database, tenant) as connection:
        stage(connection, tenant, FakeEmbedder("third", 3), max_rows=1)

    with pytest.raises(Conflict, match=r'on its way to "third.*--abort'):
        run_reembedding(database, tenant, new)
    abort_reembedding(database.engine, tenant)
    run_reembedding(database, tenant, new)
    assert_embedded(database, tenant, new)


def test_writers_go_on_meanwhile_and_are_refused_after_the_switch(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    def write_on(writer: int) -> None:
        for turn in range(60):
            name = f"n{turn % 15}" if writer else f"w{turn}"
            try:
                edit(database, tenant, name, f"{TEXTS[turn]} {writer}", OLD)
            except Conflict:
                return

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write_on, writer) for writer in range(2)]
        report = run_reembedding(database, tenant, new)
        for writer in writers:
            writer.result()
    with pytest.raises(Conflict, match="contextforge reembed"):
        edit(database, tenant, "late", "Too late.", OLD)

    assert report.switched >= 10
    assert_embedded(database, tenant, new)


def test_a_writer_that_waits_for_the_switch_is_refused_and_not_mixed_in(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with searching(database, tenant) as connection:
            stage(connection, tenant, new)
            switch_embedder(connection, tenant, embedder_version=new.version)
            writer = pool.submit(edit, database, tenant, "n0", "Late.", OLD)
            wait_for_locks(database, 1)
        with pytest.raises(Conflict, match="holds embeddings of"):
            writer.result()
    assert_embedded(database, tenant, new)


def test_nodes_deleted_meanwhile_are_no_obstacle(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    def delete(_: Sequence[str]) -> None:
        with searching(database, tenant) as connection:
            delete_nodes(connection, tenant, external_ids=["n0", "n5"])

    new.before = delete
    assert run_reembedding(database, tenant, new).switched == 8
    assert_embedded(database, tenant, new)


def test_the_ann_rows_go_with_the_old_vectors_and_come_back_with_the_new(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    indexed = "select count(*) from contextforge.ann_nodes where tenant_id = %s"
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql("update contextforge.installation set exact_limit = 5")
        assert refresh_ann(connection, tenant) == 10

    run_reembedding(database, tenant, new)

    assert count(database, indexed, tenant) == 0
    assert_embedded(database, tenant, new)
    with owner_transaction(database.admin) as connection:
        assert refresh_ann(connection, tenant) == 10
    assert find(database, tenant, new, TEXTS[4])[0][1] == pytest.approx(1, abs=1e-3)


def test_nodes_that_were_never_embedded_are_embedded_too_and_unsearchable_ones_never(
    make_tenant: MakeTenant, make_node: MakeNode, database: LiveDatabase, new: FakeEmbedder
) -> None:
    tenant = make_tenant()
    nodes = [make_node("a", "All of it.", searchable=False), make_node("b", "Part.", parent="a")]
    with searching(database, tenant) as connection:
        upsert_nodes(connection, tenant, nodes=nodes)

    run_reembedding(database, tenant, new)

    assert new.embedded == ["Part."]
    assert_embedded(database, tenant, new)


def test_the_model_a_tenant_has_already_changes_nothing(
    tenant: str, database: LiveDatabase
) -> None:
    rows = snapshot(database, tenant)

    report = run_reembedding(database, tenant, OLD)

    assert (report.embedded, report.switched) == (0, 0)
    assert snapshot(database, tenant) == rows


def test_an_empty_tenant_is_left_to_its_first_writer(
    tenant: str, write: WriteTexts, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with searching(database, tenant) as connection:
        delete_nodes(connection, tenant, external_ids=[f"n{place}" for place in range(10)])

    assert run_reembedding(database, tenant, new).switched == 0
    assert read_profile(database, tenant) == (None, None)
    write(tenant, TEXTS[:2], embedder=new)
    assert_embedded(database, tenant, new)


def test_deleting_a_tenant_takes_what_was_staged(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    with searching(database, tenant) as connection:
        stage(connection, tenant, new)
    with owner_transaction(database.admin) as connection:
        assert delete_tenant(connection, tenant)
    assert count_staged(database, tenant) == 0


def test_the_command_switches_or_aborts_and_needs_to_be_told_which(
    tenant: str, database: LiveDatabase, new: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database.service_url)
    monkeypatch.setenv("EMBEDDING_DIM", "8")
    monkeypatch.setattr(embedding, "load_embedder", {"new-model": new, "old": OLD}.__getitem__)
    with searching(database, tenant) as connection:
        stage(connection, tenant, new, max_rows=3)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["reembed", "--tenant", tenant, *arguments])

    assert (run().exit_code, run("--abort", "--model", "new-model").exit_code) == (2, 2)
    assert run("--abort").output == "3 embeddings dropped; acme is searched as before.\n"
    report = json.loads(run("--model", "new-model", "--json").output)
    assert report["switched"] == 10
    assert report["comparison"]["source"] == "vectors"
    assert_embedded(database, tenant, new)
    assert "Set EMBEDDING_MODEL=new-model" in run("--model", "new-model").output


# --- mixing ------------------------------------------------------------------------------------


def test_another_embedder_is_refused_with_the_way_out_unless_mixing_is_allowed(
    tenant: str, write: WriteTexts, database: LiveDatabase, new: FakeEmbedder
) -> None:
    rows, twin = snapshot(database, tenant), FakeEmbedder("twin", 4)

    way_out = "contextforge reembed --tenant acme --model"
    with pytest.raises(Conflict, match=way_out):
        write(tenant, TEXTS[:3], embedder=twin)
    with pytest.raises(Conflict, match=f"Only embeddings of 4 dimensions .* have 6.*{way_out}"):
        write(tenant, TEXTS[:3], embedder=new, mixed=True)
    assert snapshot(database, tenant) == rows

    write(tenant, TEXTS[3:5], embedder=twin, mixed=True)
    assert read_profile(database, tenant) == (OLD.version, 4)
    assert find(database, tenant, twin, TEXTS[3])[0][1] == pytest.approx(1, abs=1e-3)

    # The way back to one model embeds only what is not of it.
    report = run_reembedding(database, tenant, twin)
    assert (twin.embedded, report.switched) == (list(TEXTS[2:10]), 8)
    assert_embedded(database, tenant, twin)


def test_ingestion_refuses_another_model_before_it_embeds_anything(
    tenant: str, database: LiveDatabase, new: FakeEmbedder
) -> None:
    twin = FakeEmbedder("twin", 4)
    groups = [NodeGroup("a.md", (NodeDraft("a.md", "article", content="A text."),))]

    for embedder, mixed, hint in (
        (twin, False, "--allow-mixed.*contextforge reembed"),
        (new, True, "Only embeddings of 4 dimensions .* have 6.*contextforge reembed"),
    ):
        with pytest.raises(Conflict, match=hint):
            Ingestion(database.engine, tenant, embedder, allow_mixed=mixed).run(groups)
        assert embedder.embedded == []

    report = Ingestion(database.engine, tenant, twin, allow_mixed=True).run(groups)
    assert (report.added, report.rejected) == (1, ())
