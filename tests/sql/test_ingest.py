"""Ingestion into a real database: what is stored, and what is left alone."""

from __future__ import annotations

from pathlib import Path

from service.ingestion.convert import group_document
from tests.live_database import LiveDatabase
from tests.sql.ingesting import GUIDE, Ask, Find, Ingest, make_document, write_files
from tests.sql.recount import assert_consistent, snapshot
from tests.tiny_embedder import TinyEmbedder

SECTIONS = """
    select
        n.external_id, n.node_type, p.external_id, n.section_path, n.order_index, n.header,
        n.doc_title, n.lang, n.token_count > 0
    from knowledge_nodes as n
    left join knowledge_nodes as p on p.tenant_id = n.tenant_id and p.node_id = n.parent_id
    order by coalesce(p.external_id, n.external_id), n.order_index nulls first
"""


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
