"""The recall audit: what the index misses is noticed, put on record and said with its remedy."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from service.db.ann_index import IvfflatOptions, build_ann_index, tune_ann_index
from service.db.audits import audit_vector_leg, read_audit_state
from service.db.engine import owner_transaction, tenant_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import upsert_nodes
from service.errors import Forbidden, NotFound
from service.quality.audit import REMEDY, AuditedSearch, Auditor, audit_tenant
from service.retrieval.request import RetrievalRequest
from service.types import NodeDraft, SearchFilters
from tests.conftest import MakeDatabase
from tests.live_database import LiveDatabase
from tests.tiny_embedder import TinyEmbedder

DIM = 16
ROWS = 900
MODEL = TinyEmbedder(dimension=DIM)


@dataclass
class Told:
    """What an auditor says of a tenant."""

    recalls: list[tuple[str, float, bool]] = field(default_factory=list)

    def note(self, tenant_id: str, recall: float, below: bool) -> None:
        self.recalls.append((tenant_id, recall, below))


@pytest.fixture
def database(make_database: MakeDatabase) -> LiveDatabase:
    """acme and globex are searched through the index, tiny exactly."""
    database = make_database(embedding_dim=DIM)
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme", "globex", "tiny"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
        tune_ann_index(connection, exact_limit=100)
    for tenant, rows in (("acme", ROWS), ("globex", ROWS), ("tiny", 30)):
        texts = [f"{tenant}{number} word{number % 70} word{number % 13}" for number in range(rows)]
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[NodeDraft(str(n), "article", title=text) for n, text in enumerate(texts)],
                embeddings=list(MODEL.embed_queries(texts)),
                embedder_version=MODEL.version,
            )
            refresh_ann(connection, tenant, max_rows=rows)
    return database


def break_index(database: LiveDatabase, tenant: str) -> None:
    """Let the index hold other vectors than the nodes have."""
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "update contextforge.ann_nodes as a set embedding = b.embedding"
            " from contextforge.ann_nodes as b"
            " where a.tenant_id = %s and b.tenant_id = %s and b.node_id = a.node_id + 450",
            (tenant, tenant),
        )


def run_auditor(database: LiveDatabase, tenant: str, told: Told, *, searches: int = 25) -> Auditor:
    auditor = Auditor(MODEL, share=1, least_recall=0.95, on_recall=told.note)
    wanted = [
        AuditedSearch(f"word{n} word{n * 3}", None, None, SearchFilters()) for n in range(searches)
    ]
    with tenant_transaction(database.engine, [tenant]) as connection:
        auditor.write(connection, tenant, wanted)
    return auditor


def test_a_broken_index_is_noticed_for_its_tenant_alone_and_the_remedy_is_said_once(
    database: LiveDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    break_index(database, "acme")
    told = Told()
    with caplog.at_level(logging.WARNING):
        auditor = run_auditor(database, "acme", told)
        run_auditor(database, "globex", told)
        with tenant_transaction(database.engine, ["acme"]) as connection:
            auditor.write(connection, "acme", [AuditedSearch("word1", None, None, SearchFilters())])
    acme, globex, again = told.recalls
    assert (acme[0], acme[2]) == ("acme", True)
    assert acme[1] < 0.8
    assert (globex[0], globex[2]) == ("globex", False)
    assert globex[1] >= 0.99
    assert again[2]
    [warning] = [record for record in caplog.records if REMEDY in record.message]
    assert warning.__dict__["fields"]["tenant_id"] == "acme"
    assert "--ef-search" in REMEDY

    with tenant_transaction(database.engine, ["acme"]) as connection:
        assert read_audit_state(connection, "acme").audits == 26
        assert read_audit_state(connection, "globex").audits == 0


def test_a_poor_index_is_noticed_and_a_good_one_gives_no_warning(database: LiveDatabase) -> None:
    report = audit_by_hand(database, "acme")
    assert (report.path, report.source, report.audited) == ("hnsw", "titles", 50)
    assert report.recall is not None
    assert report.recall >= 0.99
    assert report.remedy is None

    build_ann_index(database.admin, IvfflatOptions(lists=90), search_effort=1)
    report = audit_by_hand(database, "acme")
    assert report.path == "ivfflat"
    assert report.recall is not None
    assert report.recall < 0.95
    assert report.remedy == REMEDY


def audit_by_hand(database: LiveDatabase, tenant: str):
    return audit_tenant(database.engine, tenant, embedder=MODEL, questions=50, least_recall=0.95)


def test_a_tenant_that_is_searched_exactly_is_not_audited(database: LiveDatabase) -> None:
    told = Told()
    run_auditor(database, "tiny", told)
    assert told.recalls == []
    report = audit_by_hand(database, "tiny")
    assert (report.path, report.audited, report.recall, report.remedy) == ("exact", 0, None, None)


def test_few_audits_say_nothing_yet(database: LiveDatabase) -> None:
    break_index(database, "acme")
    told = Told()
    run_auditor(database, "acme", told, searches=19)
    assert told.recalls == []


def test_an_audit_sees_what_its_search_saw_and_no_other_tenant(database: LiveDatabase) -> None:
    query = MODEL.embed_query("word1")
    with tenant_transaction(database.engine, ["acme"]) as connection:
        filtered = audit_vector_leg(
            connection, ["acme"], query_embedding=query, filters=SearchFilters(docs=["3"])
        )
    assert filtered.path == "exact"
    with (
        pytest.raises(Forbidden),
        tenant_transaction(database.engine, ["acme"]) as connection,
    ):
        audit_vector_leg(connection, ["globex"], query_embedding=query)
    with pytest.raises((Forbidden, NotFound)):
        audit_by_hand(database, "nobody")


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_the_searches_with_a_vector_is_chosen(share: float) -> None:
    auditor = Auditor(MODEL, share=share, least_recall=0.95, on_recall=Told().note)
    request = RetrievalRequest("word", ("acme",), dataset_name="docs")
    chosen = auditor.choose(request, cached=False)
    assert (chosen is not None) == (share == 1)
    assert chosen is None or chosen.dataset_name == "docs"
    assert auditor.choose(request, cached=True) is None
    keywords = RetrievalRequest("word", ("acme",), keywords_only=True)
    assert auditor.choose(keywords, cached=False) is None
