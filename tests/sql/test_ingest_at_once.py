"""Ingestion interrupted, and by many at once: one version of each document, no duplicates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from service.ingestion import ingest as ingest_module
from service.ingestion.convert import group_document
from service.ingestion.documents import Document
from service.ingestion.ingest import Ingestion, IngestReport
from service.ingestion.read import find_files, read_document
from tests.live_database import LiveDatabase
from tests.sql.ingesting import GUIDE, Ask, Ingest, make_document, write_files
from tests.sql.recount import assert_consistent
from tests.tiny_embedder import TinyEmbedder


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
