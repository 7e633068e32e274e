"""Ingestion into a real database: what is stored, what is left alone, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Protocol

import pytest

from service.db.engine import open_engine, owner_transaction, tenant_transaction
from service.db.search import bm25_search_nodes, vector_search_nodes
from service.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError
from service.ingestion import ingest as ingest_module
from service.ingestion.convert import NodeGroup, group_document, group_rows
from service.ingestion.documents import Document, Section
from service.ingestion.ingest import Ingestion, IngestReport, Rejection
from service.ingestion.jsonl import NodeRow
from service.ingestion.read import find_files, read_document, read_rows
from service.types import NodeDraft
from tests.conftest import MakeLogin, MakeTenant
from tests.live_database import LiveDatabase
from tests.sql.recount import assert_consistent, snapshot
from tests.tiny_embedder import TinyEmbedder

GUIDE = """# Guide

The guide explains how the index of one tenant is built and how it is asked a question.

## Install

Run the installer once, then start the server and wait until it answers your first request.

### Windows

On Windows the installer asks for a folder, and it never needs the rights of an administrator.

## Use

Ask a question in plain words; the answer names the sections that it was taken from.
"""
FILES = {
    "guide.md": GUIDE,
    "web/page.html": '<html lang="de"><head><title>Die Seite</title></head><body>'
    "<h1>Die Seite</h1><p>Hier steht ein kurzer Absatz über Kartoffeln und ihren Anbau.</p>"
    "<h2>Ernte</h2><p>Geerntet wird im Herbst, wenn das Kraut welk geworden ist.</p></body></html>",
    "notes.txt": "The zeppelin landed at noon on the lawn behind the house.\n\nNobody had expected "
    "that it would arrive before the evening, and the band was still asleep.\n",
    "manual.rst": "Manual\n======\n\nTurn the crank.\n\nCare\n----\n\nOil it every spring.\n",
    "rows.jsonl": '{"external_id": "r1", "node_type": "fact", "title": "Lark", "content": "A '
    'lark sings."}\n{"_id": "r2", "title": "Owl", "text": "An owl hunts at night."}\n',
}
SECTIONS = """
    select
        n.external_id, n.node_type, p.external_id, n.section_path, n.order_index, n.header,
        n.doc_title, n.lang, n.token_count > 0
    from knowledge_nodes as n
    left join knowledge_nodes as p on p.tenant_id = n.tenant_id and p.node_id = n.parent_id
    order by coalesce(p.external_id, n.external_id), n.order_index nulls first
"""

Source = Path | Iterable[NodeGroup | Rejection]


class Ingest(Protocol):
    def __call__(
        self,
        source: Source,
        *,
        tenant: str = "acme",
        embedder: TinyEmbedder | None = None,
        prune: bool = False,
        dry_run: bool = False,
        dataset: str = "default",
    ) -> IngestReport: ...


Ask = Callable[..., list[tuple[Any, ...]]]
Find = Callable[..., list[str]]


def read_groups(folder: Path) -> Iterator[NodeGroup | Rejection]:
    """What the command makes of a folder."""
    for source in find_files([str(folder)]):
        try:
            if source.format == "jsonl":
                rows = [row for row in read_rows(source) if isinstance(row, NodeRow)]
                yield from group_rows(source.name, rows)
            else:
                yield group_document(read_document(source))
        except ServiceError as exc:
            yield Rejection(source.external_id, str(exc))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def make_document(external_id: str, *contents: str, **fields: Any) -> Document:
    """A document with a section for each content, below headings A, B, C..."""
    sections = tuple(
        Section(place, chr(65 + place), f"{external_id} > {chr(65 + place)}", content, 5)
        for place, content in enumerate(contents)
    )
    given = {"title": external_id, "content": "\n".join(contents), "sections": sections}
    return Document(external_id, **{**given, **fields})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "docs", FILES)


@pytest.fixture
def tenant(make_tenant: MakeTenant) -> str:
    return make_tenant()


@pytest.fixture
def ingest(tenant: str, database: LiveDatabase) -> Ingest:
    """ingest(folder or groups, ...): run an ingestion; the tenant is acme unless named."""

    def run(
        source: Source,
        *,
        tenant: str = tenant,
        embedder: TinyEmbedder | None = None,
        prune: bool = False,
        dry_run: bool = False,
        dataset: str = "default",
    ) -> IngestReport:
        groups = read_groups(source) if isinstance(source, Path) else source
        return Ingestion(
            database.engine,
            tenant,
            embedder or TinyEmbedder(),
            dataset_name=dataset,
            dry_run=dry_run,
        ).run(groups, prune=prune)

    return run


@pytest.fixture
def ask(database: LiveDatabase) -> Ask:
    """ask(statement, *arguments): rows as the owner sees them."""

    def run(statement: str, *arguments: object) -> list[tuple[Any, ...]]:
        with owner_transaction(database.admin) as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement, arguments)]

    return run


@pytest.fixture
def find(database: LiveDatabase, ask: Ask) -> Find:
    """find(words, tenant): ids of what keywords find, then of what is nearest in meaning."""

    def run(words: str, tenant: str = "acme") -> list[str]:
        names: dict[int, str] = dict(ask("select node_id, external_id from knowledge_nodes"))
        with tenant_transaction(database.engine, [tenant]) as connection:
            by_words = bm25_search_nodes(connection, [tenant], query_text=words)
            near = vector_search_nodes(
                connection, [tenant], query_embedding=TinyEmbedder().embed_query(words), top_k=100
            )
        return [names[hit.node_id] for hit in (*by_words, *near)]

    return run


@pytest.fixture
def links(ask: Ask) -> Callable[[], set[tuple[str, str]]]:
    """links(): all hyperlinks as pairs of ids."""
    return lambda: {
        (source, target)
        for source, target in ask("""
            select s.external_id, t.external_id
            from node_links as l
            join knowledge_nodes as s on s.tenant_id = l.tenant_id and s.node_id = l.source_id
            join knowledge_nodes as t on t.tenant_id = l.tenant_id and t.node_id = l.target_id
            where l.link_type = 'hyperlink'
        """)
    }


def test_a_folder_of_every_format_becomes_articles_and_sections(
    folder: Path, ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    report = ingest(folder)

    assert (report.added, report.changed, report.unchanged) == (6, 0, 0)
    assert (report.nodes, report.embedded, report.rejected) == (15, 11, ())
    guide, page, manual = "guide.md", "web/page.html", "manual.rst"
    assert ask(SECTIONS) == [
        (guide, "article", None, None, None, None, "Guide", "en", None),
        (f"{guide}#guide.1", "section", guide, "Guide", 0, "Guide", "Guide", "en", True),
        (
            *(f"{guide}#guide-install.1", "section", guide, "Guide > Install", 1, "Install"),
            *("Guide", "en", True),
        ),
        (
            *(f"{guide}#guide-install-windows.1", "section", guide),
            *("Guide > Install > Windows", 2, "Windows", "Guide", "en", True),
        ),
        (f"{guide}#guide-use.1", "section", guide, "Guide > Use", 3, "Use", "Guide", "en", True),
        (manual, "article", None, None, None, None, "Manual", None, None),
        (f"{manual}#manual.1", "section", manual, "Manual", 0, "Manual", "Manual", None, True),
        (
            *(f"{manual}#manual-care.1", "section", manual, "Manual > Care", 1, "Care"),
            *("Manual", None, True),
        ),
        ("notes.txt", "article", None, None, None, None, "notes", "en", None),
        ("notes.txt#text.1", "section", "notes.txt", None, 0, None, "notes", "en", True),
        ("r1", "fact", None, None, None, None, None, None, True),
        ("r2", "article", None, None, None, None, None, None, True),
        (page, "article", None, None, None, None, "Die Seite", "de", None),
        (
            *(f"{page}#die-seite.1", "section", page, "Die Seite", 0, "Die Seite"),
            *("Die Seite", "de", True),
        ),
        (
            *(f"{page}#die-seite-ernte.1", "section", page, "Die Seite > Ernte", 1, "Ernte"),
            *("Die Seite", "de", True),
        ),
    ]
    assert ask("select content from knowledge_nodes where external_id = %s", guide) == [(GUIDE,)]
    assert_consistent(database, "acme")


def test_sections_are_found_and_the_article_above_them_is_not(
    folder: Path, ingest: Ingest, ask: Ask, find: Find
) -> None:
    ingest(folder)

    found = find("installer administrator")
    assert "guide.md#guide-install-windows.1" in found
    assert "guide.md" not in found
    assert set(found) >= {"r1", "r2", "notes.txt#text.1"}
    assert ask(
        "select external_id from knowledge_nodes"
        " where searchable_text is null and embedding is null and embedder_version is null"
        " order by 1"
    ) == [("guide.md",), ("manual.rst",), ("notes.txt",), ("web/page.html",)]
    assert ask("select count(*) from contextforge.search_nodes") == [(11,)]


def test_a_document_without_sections_is_found_itself(ingest: Ingest, find: Find) -> None:
    ingest([group_document(make_document("memo", content="The pelican sleeps."))])

    assert find("pelican") == ["memo", "memo"]


def test_an_article_that_gains_sections_is_no_longer_found(
    ingest: Ingest, find: Find, database: LiveDatabase
) -> None:
    ingest([group_document(make_document("memo", content="The pelican sleeps."))])
    ingest([group_document(make_document("memo", "The pelican sleeps."))])

    assert set(find("pelican")) == {"memo#memo-a.1"}
    assert_consistent(database, "acme")


def test_an_unchanged_folder_is_neither_embedded_nor_written(
    folder: Path, ingest: Ingest, database: LiveDatabase
) -> None:
    ingest(folder)
    before, again = snapshot(database, "acme"), TinyEmbedder()

    report = ingest(folder, embedder=again)

    assert again.texts == []
    assert (report.added, report.changed, report.unchanged, report.embedded) == (0, 0, 6, 0)
    assert snapshot(database, "acme") == before


def test_an_edited_section_alone_is_embedded_again(
    folder: Path, ingest: Ingest, find: Find, database: LiveDatabase
) -> None:
    ingest(folder)
    write_files(folder, {"guide.md": GUIDE.replace("in plain words", "about giraffes")})
    again = TinyEmbedder()

    report = ingest(folder, embedder=again)

    (text,) = again.texts
    assert "giraffes" in text
    assert (report.changed, report.unchanged, report.embedded) == (1, 5, 1)
    assert find("giraffes")[0] == "guide.md#guide-use.1"
    assert_consistent(database, "acme")


def test_a_removed_section_disappears(
    folder: Path, ingest: Ingest, find: Find, database: LiveDatabase
) -> None:
    ingest(folder)
    start, end = GUIDE.index("### Windows"), GUIDE.index("## Use")
    write_files(folder, {"guide.md": GUIDE[:start] + GUIDE[end:]})

    report = ingest(folder)

    assert (report.changed, report.removed) == (1, 0)
    assert "guide.md#guide-install-windows.1" not in find("Windows administrator")
    assert_consistent(database, "acme")


def test_a_section_put_in_the_middle_leaves_the_others_alone(
    folder: Path, ingest: Ingest, ask: Ask
) -> None:
    statement = "select external_id, node_id from knowledge_nodes"
    ingest(folder)
    before: dict[str, int] = dict(ask(statement))
    again = TinyEmbedder()
    inserted = GUIDE.replace("## Use", "## Upgrade\n\nStop the server first.\n\n## Use")
    write_files(folder, {"guide.md": inserted})

    ingest(folder, embedder=again)

    after: dict[str, int] = dict(ask(statement))
    assert len(again.texts) == 1
    assert after.keys() - before.keys() == {"guide.md#guide-upgrade.1"}
    assert {name: after[name] for name in before} == before
    assert ask(
        "select external_id from knowledge_nodes where doc_title = 'Guide' order by order_index"
    )[3:5] == [("guide.md#guide-upgrade.1",), ("guide.md#guide-use.1",)]


def test_prune_removes_what_vanished_but_not_what_was_rejected(
    folder: Path, ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    ingest(folder)
    ingest([group_document(make_document("kept", "Another dataset."))], dataset="other")
    (folder / "notes.txt").unlink()
    (folder / "guide.md").write_bytes(b"\x00\xff\x00")

    assert ingest(folder).removed == 0
    report = ingest(folder, prune=True)

    assert report.removed == 1
    assert [rejection.source for rejection in report.rejected] == ["guide.md"]
    stored = {name for (name,) in ask("select external_id from knowledge_nodes")}
    assert {"guide.md", "guide.md#guide-use.1", "kept", "r1"} <= stored
    assert not any(name.startswith("notes.txt") for name in stored)
    assert_consistent(database, "acme")


def test_a_dry_run_counts_and_writes_nothing(
    folder: Path, ingest: Ingest, database: LiveDatabase, tenant: str
) -> None:
    empty = snapshot(database, tenant)
    embedder = TinyEmbedder()
    report = ingest(folder, dry_run=True, embedder=embedder)
    assert (report.added, report.nodes, report.embedded) == (6, 15, 11)
    assert embedder.texts == []
    assert snapshot(database, tenant) == empty

    ingest(folder)
    full = snapshot(database, tenant)
    (folder / "notes.txt").unlink()
    write_files(folder, {"guide.md": GUIDE.replace("## Use", "## Usage")})
    report = ingest(folder, dry_run=True, prune=True)
    assert (report.changed, report.unchanged, report.removed) == (1, 4, 1)
    assert snapshot(database, tenant) == full


LINKED = {
    "a.md": "# First\n\nSee [b](sub/b.md#part), [[Cat Page|cats]] and <https://Example.com/d>.",
    "sub/b.md": "# Second\n\nBack [up](../a.md), to [c](/c.html), and [here](#part).",
    "c.html": "<html><head><title>Cats</title></head><body><h1>Cat Page</h1>"
    '<p>A cat asks <a href="sub/b.md">the second page</a> about its dinner.</p>'
    f"{'<p>Then it sleeps in the sun until somebody opens the door of the kitchen.</p>' * 6}"
    "</body></html>",
    "d.md": "---\nurl: https://example.com/d\n---\n# Fourth\n\nRead [[übersicht]] first.",
    "e.md": "# Übersicht\n\nTo [nobody](missing.md), [out](../../a.md), [[Nowhere]], [me](e.md).",
}
GRAPH = {
    *(("a.md", "sub/b.md"), ("a.md", "c.html"), ("a.md", "d.md")),
    *(("sub/b.md", "a.md"), ("sub/b.md", "c.html"), ("c.html", "sub/b.md"), ("d.md", "e.md")),
}


def test_links_by_path_url_and_title_make_the_drawn_graph(
    tmp_path: Path, ingest: Ingest, links: Callable[[], set[tuple[str, str]]]
) -> None:
    write_files(tmp_path, LINKED)

    assert ingest(tmp_path).links == len(GRAPH)
    assert links() == GRAPH
    assert ingest(tmp_path).links == 0
    assert links() == GRAPH


def test_a_dangling_reference_is_linked_when_its_target_arrives(
    tmp_path: Path, ingest: Ingest, links: Callable[[], set[tuple[str, str]]]
) -> None:
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    late = write_files(tmp_path / "late", {"missing.md": "# Nobody\n\nHere I am."})

    assert ingest(late).links == 1
    assert links() == GRAPH | {("e.md", "missing.md")}


def test_a_link_that_left_its_document_disappears(
    tmp_path: Path, ingest: Ingest, links: Callable[[], set[tuple[str, str]]]
) -> None:
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    write_files(tmp_path, {"a.md": "# First\n\nSee [b](sub/b.md).", "d.md": "# Fourth\n\nAlone."})

    ingest(tmp_path)

    assert links() == GRAPH - {("a.md", "c.html"), ("a.md", "d.md"), ("d.md", "e.md")}


def test_rows_link_by_id_until_they_no_longer_say_so(
    ingest: Ingest, links: Callable[[], set[tuple[str, str]]]
) -> None:
    def rows(*first: str) -> list[NodeGroup]:
        drafts = [NodeDraft(name, "fact", content=f"fact {name}") for name in "abc"]
        given = [NodeRow(1, drafts[0], links=first), NodeRow(2, drafts[1]), NodeRow(3, drafts[2])]
        return list(group_rows("rows", given))

    ingest(rows("b", "c"))
    assert links() == {("a", "b"), ("a", "c")}
    ingest(rows("c"))
    assert links() == {("a", "c")}
    ingest(rows())
    assert links() == set()


def test_rows_with_and_without_vectors_all_have_one(ingest: Ingest, ask: Ask) -> None:
    embedder = TinyEmbedder()
    rows = [
        NodeRow(1, NodeDraft("given", "fact", content="one"), embedder.embed_query("one")),
        NodeRow(2, NodeDraft("open", "fact", content="two")),
    ]

    report = ingest(group_rows("rows", rows), embedder=embedder)

    assert (report.embedded, embedder.texts) == (1, ["two"])
    assert ask("select count(*) from knowledge_nodes where embedding is null") == [(0,)]


def test_two_tenants_with_the_same_files_never_mix(
    tmp_path: Path,
    ingest: Ingest,
    make_tenant: MakeTenant,
    ask: Ask,
    find: Find,
    database: LiveDatabase,
) -> None:
    other = make_tenant("globex")
    write_files(tmp_path, LINKED)
    ingest(tmp_path)
    before = snapshot(database, "acme")

    assert ingest(tmp_path, tenant=other).links == len(GRAPH)
    write_files(tmp_path, {"a.md": "# First\n\nThe walrus is alone."})
    for name in ("sub/b.md", "c.html"):
        (tmp_path / name).unlink()
    ingest(tmp_path, tenant=other, prune=True)

    assert snapshot(database, "acme") == before
    assert find("walrus", other)[0] == "a.md#first.1"
    assert bool(ask("select from node_links where tenant_id = %s", other))
    assert_consistent(database, "acme", other)


def test_an_unknown_tenant_fails_as_a_whole(folder: Path, ingest: Ingest, ask: Ask) -> None:
    embedder = TinyEmbedder()
    with pytest.raises(NotFound, match="nobody"):
        ingest(folder, tenant="nobody", embedder=embedder)
    with pytest.raises(NotFound, match="nobody"):
        ingest([], tenant="nobody")
    with pytest.raises(InvalidInput, match="tenant id"):
        ingest(folder, tenant="no body")
    assert embedder.texts == []
    assert ask("select from knowledge_nodes") == []


def test_a_login_that_may_only_read_is_forbidden_to_ingest(
    folder: Path, tenant: str, make_login: MakeLogin, database: LiveDatabase, ask: Ask
) -> None:
    engine = open_engine(database.url_for(make_login(granted=[tenant])))
    with pytest.raises(Forbidden):
        Ingestion(engine, tenant, TinyEmbedder()).run(read_groups(folder))
    engine.dispose()
    assert ask("select from knowledge_nodes") == []


def test_another_embedder_is_refused_before_anything_is_embedded(
    folder: Path, ingest: Ingest, database: LiveDatabase
) -> None:
    ingest(folder)
    before, other = snapshot(database, "acme"), TinyEmbedder(model="other")

    with pytest.raises(Conflict, match=r"tiny@1/8.*other@1/8"):
        ingest(folder, embedder=other)

    assert other.texts == []
    assert snapshot(database, "acme") == before


def test_a_bad_document_is_rejected_whole_and_the_others_are_stored(
    ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    documents = [
        make_document("first", "One."),
        make_document("huge", "Fine.", "word " * 200_001),
        make_document("nul", "Fine.", metadata={"deep": {"key": ["a\x00b"]}}),
        make_document("nan", "Fine.", metadata={"score": float("nan")}),
        make_document("half", "Fine.", metadata={"mark": "\ud800"}),
        make_document("last", "Two."),
    ]

    report = ingest(map(group_document, documents))

    assert (report.added, report.nodes) == (2, 4)
    reasons = {rejection.source: rejection.reason for rejection in report.rejected}
    assert list(reasons) == ["huge", "nul", "nan", "half"]
    assert "1,000,000 bytes" in reasons["huge"]
    assert "NUL byte in its metadata" in reasons["nul"]
    assert "nan" in reasons["nan"]
    assert "surrogate" in reasons["half"]
    assert {
        name.partition("#")[0] for (name,) in ask("select external_id from knowledge_nodes")
    } == {*("first", "last")}
    assert_consistent(database, "acme")


def test_a_document_that_turned_bad_keeps_its_last_good_version(
    ingest: Ingest, database: LiveDatabase
) -> None:
    ingest([group_document(make_document("memo", "Good.", "Better."))])
    before = snapshot(database, "acme")

    report = ingest([group_document(make_document("memo", "word " * 200_001))], prune=True)

    assert [rejection.source for rejection in report.rejected] == ["memo"]
    assert snapshot(database, "acme") == before


def test_interrupted_and_run_again_it_completes_without_duplicates(
    ingest: Ingest, ask: Ask, database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "NODES_AT_ONCE", 6)
    groups = [group_document(make_document(f"d{place}", "One.", "Two.")) for place in range(6)]
    left = iter([None])

    def fail_at_second_batch() -> None:
        if next(left, StopIteration) is StopIteration:
            raise MemoryError

    with pytest.raises(MemoryError):
        ingest(groups, embedder=TinyEmbedder(before_batch=fail_at_second_batch))
    assert ask("select count(*) from knowledge_nodes") == [(6,)]
    assert_consistent(database, "acme")

    again = TinyEmbedder()
    report = ingest(groups, embedder=again)

    assert (report.added, report.changed, report.unchanged) == (4, 0, 2)
    assert len(again.texts) == 8
    assert ask("select count(*), count(distinct external_id) from knowledge_nodes") == [(18, 18)]
    assert_consistent(database, "acme")


def ingest_at_once(database: LiveDatabase, documents: list[Document]) -> list[IngestReport]:
    """Each document by a thread of its own, all from the same moment on."""
    barrier = Barrier(len(documents), timeout=20)

    def run(document: Document) -> IngestReport:
        # Each has looked at what is stored before the first writes: the worst case.
        done: list[tuple[str, ...]] = []
        embedder = TinyEmbedder(before_batch=lambda: done or barrier.wait(), batches=done)
        return Ingestion(database.engine, "acme", embedder).run([group_document(document)])

    with ThreadPoolExecutor(len(documents)) as pool:
        return list(pool.map(run, documents))


def test_sixteen_at_once_with_the_same_document_leave_one_version(
    tmp_path: Path, tenant: str, ask: Ask, database: LiveDatabase
) -> None:
    write_files(tmp_path, {"guide.md": f"{GUIDE}\nSee [[Guide]], [other](other.md), [x](x.md)."})
    document = read_document(find_files([str(tmp_path)])[0])

    reports = ingest_at_once(database, [document] * 16)

    assert [report.rejected for report in reports] == [()] * 16
    assert sum(report.added for report in reports) == 1
    assert sum(report.unchanged for report in reports) == 15
    assert ask("select count(*) from knowledge_nodes") == [(5,)]
    assert_consistent(database, tenant)


def test_sixteen_versions_of_a_document_at_once_leave_one_of_them_whole(
    ingest: Ingest, ask: Ask, database: LiveDatabase
) -> None:
    ingest([group_document(make_document("memo", *(["old"] * 16)))])
    versions = [
        make_document(
            "memo", *("old" if place != version else f"new{version}" for place in range(16))
        )
        for version in range(16)
    ]

    reports = ingest_at_once(database, versions)

    assert [report.rejected for report in reports] == [()] * 16
    ((content,),) = ask("select content from knowledge_nodes where parent_id is null")
    sections = ask("select content from knowledge_nodes where parent_id > 0 order by order_index")
    assert "\n".join(text for (text,) in sections) == content
    assert (
        ask("select external_id from knowledge_nodes where parent_id > 0 and embedding is null")
        == []
    )
    assert_consistent(database, "acme")


def test_json_lines_of_a_file_are_stored_as_they_are(
    tmp_path: Path, ingest: Ingest, ask: Ask
) -> None:
    row = {
        "external_id": "x",
        "node_type": "fact",
        "title": "T",
        "summary": "S",
        "content": "C",
        "metadata": {"k": [1, None]},
        "lang": "en",
        "acl": ["staff"],
        "url": "https://example.com/x",
        "order_index": 3,
        "token_count": 9,
    }
    write_files(tmp_path, {"rows.jsonl": json.dumps(row)})

    ingest(tmp_path)

    columns = ", ".join(row)
    assert ask(f"select {columns} from knowledge_nodes") == [tuple(row.values())]
