"""What ingestion refuses, and that the rest is stored or nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.db.engine import open_engine
from service.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.ingestion.convert import group_document
from service.ingestion.ingest import Ingestion
from tests.conftest import MakeLogin
from tests.live_database import LiveDatabase
from tests.sql.ingesting import Ask, Ingest, make_document, read_groups
from tests.sql.recount import assert_consistent, snapshot
from tests.tiny_embedder import TinyEmbedder


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
