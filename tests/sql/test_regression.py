"""The gate before another index or another model: real questions are searched both ways first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

import numpy as np
import pytest

from service.db.ann_index import (
    INDEX,
    NEXT,
    HnswOptions,
    IvfflatOptions,
    abort_ann_index,
    build_ann_index,
    read_ann_path,
    tune_ann_index,
)
from service.db.comparing import RankedPair, SampledQuestion, sample_questions, sample_titles
from service.db.engine import owner_transaction, tenant_transaction
from service.db.maintenance import refresh_ann
from service.db.nodes import upsert_nodes
from service.db.search import vector_search_nodes
from service.embedding import FloatMatrix, FloatVector
from service.errors import RegressionRefused
from service.ingestion.reembed import Reembedding
from service.ingestion.regression import (
    Comparison,
    EmbedderGate,
    check_indexes,
    find_regression,
    summarise_pairs,
)
from service.types import NodeDraft
from tests.conftest import MakeDatabase, MakeTenant
from tests.live_database import LiveDatabase
from tests.sql.fake_reembedding import FakeEmbedder, count_staged, read_profile
from tests.tiny_embedder import TinyEmbedder

ROWS = 800
WORDS = ("otter", "heron", "willow", "birch", "river", "delta", "anchor", "rudder", "reed", "ember")


@dataclass(frozen=True)
class TurnedEmbedder(TinyEmbedder):
    """The same model turned around: every vector differs, every neighbour stays."""

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        rows = [super(TurnedEmbedder, self).embed_query(text) for text in texts]
        return np.roll(np.array(rows, dtype=np.float32), 3, axis=1)

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self.embed_queries([text])[0]
        return vector


def ask(database: LiveDatabase, tenant: str, question: str, *, liked: int | None = None) -> None:
    """Put a question on record, and who liked which node of it."""
    digest = sha256(question.encode()).digest()
    with owner_transaction(database.admin) as connection:
        connection.exec_driver_sql(
            "insert into asked_questions (tenant_id, query_sha256, question) values (%s, %s, %s)"
            " on conflict do nothing",
            (tenant, digest, question),
        )
        if liked is None:
            return
        trace = uuid4()
        connection.exec_driver_sql(
            "insert into traces (tenant_id, trace_id, kind, key_id, query_sha256, settings,"
            " node_ids, scores, steps, milliseconds)"
            " values (%s, %s, 'search', 'k', %s, '{}', %s, '{1}', '{}', '{}')",
            (tenant, trace, digest, [liked]),
        )
        connection.exec_driver_sql(
            "insert into feedback (tenant_id, feedback_id, trace_id, key_id, signal, node_id)"
            " values (%s, %s, %s, 'k', 'clicked', %s)",
            (tenant, uuid4(), trace, liked),
        )


def find_oid(database: LiveDatabase, name: str) -> int | None:
    with owner_transaction(database.admin) as connection:
        return connection.exec_driver_sql(
            "select to_regclass(%s)::oid::bigint", (f"contextforge.{name}",)
        ).scalar()


# --- the index ------------------------------------------------------------------------------


@pytest.fixture
def indexed(make_database: MakeDatabase) -> LiveDatabase:
    """Two tenants that are searched through the index, on vectors no list can tell apart."""
    database = make_database(embedding_dim=16)
    random = np.random.default_rng(1)
    with owner_transaction(database.admin) as connection:
        for tenant in ("acme", "globex"):
            connection.exec_driver_sql("select create_tenant(%s)", (tenant,))
        tune_ann_index(connection, exact_limit=100)
    for tenant in ("acme", "globex"):
        with tenant_transaction(database.engine, [tenant]) as connection:
            nodes = [NodeDraft(str(n), "article") for n in range(ROWS)]
            vectors = random.normal(size=(ROWS, 16)).astype(np.float32)
            upsert_nodes(connection, tenant, nodes=nodes, embeddings=list(vectors))
            refresh_ann(connection, tenant, max_rows=ROWS)
    return database


def build_checked(
    database: LiveDatabase, options: HnswOptions | IvfflatOptions, *, effort: int, accept: bool
) -> list[Comparison]:
    seen: list[Comparison] = []
    build_ann_index(
        database.admin,
        options,
        search_effort=effort,
        check=lambda old, new: seen.extend(
            check_indexes(
                database.admin, old=old, new=new, find_embedder=lambda _: None, accept=accept
            )
        ),
    )
    return seen


def search(database: LiveDatabase, tenant: str) -> list[list[int]]:
    random = np.random.default_rng(7)
    with tenant_transaction(database.engine, [tenant]) as connection:
        return [
            [
                hit.node_id
                for hit in vector_search_nodes(connection, [tenant], query_embedding=query)
            ]
            for query in random.normal(size=(5, 16)).astype(np.float32)
        ]


def test_an_index_that_finds_less_is_refused_kept_unused_and_switched_to_when_accepted(
    indexed: LiveDatabase,
) -> None:
    before = search(indexed, "acme")
    poor = IvfflatOptions(lists=80)
    with pytest.raises(RegressionRefused, match=r"acme: recall falls .*globex: recall falls"):
        build_checked(indexed, poor, effort=1, accept=False)

    with owner_transaction(indexed.admin) as connection:
        assert read_ann_path(connection).method == "hnsw"
    kept = find_oid(indexed, NEXT)
    assert kept is not None
    assert search(indexed, "acme") == before

    acme, globex = build_checked(indexed, poor, effort=1, accept=True)
    assert (acme.tenant_id, globex.tenant_id) == ("acme", "globex")
    assert acme.source == "vectors"
    assert acme.old_recall == pytest.approx(1, abs=0.01)
    assert acme.new_recall is not None
    assert acme.new_recall < 0.9
    assert find_oid(indexed, INDEX) == kept
    assert find_oid(indexed, NEXT) is None
    assert search(indexed, "acme") != before

    # Back again: what finds more than the one in use is never refused.
    build_checked(indexed, HnswOptions(), effort=200, accept=False)
    assert search(indexed, "acme") == before


def test_a_refused_index_can_be_dropped(indexed: LiveDatabase) -> None:
    with pytest.raises(RegressionRefused):
        build_checked(indexed, IvfflatOptions(lists=80), effort=1, accept=False)
    assert abort_ann_index(indexed.admin)
    assert find_oid(indexed, NEXT) is None
    assert not abort_ann_index(indexed.admin)


# --- the model ------------------------------------------------------------------------------


@pytest.fixture
def embedded(database: LiveDatabase, make_tenant: MakeTenant) -> LiveDatabase:
    """Two tenants with the same forty nodes of one model; the other asked other questions."""
    model = TinyEmbedder()
    random = np.random.default_rng(2)
    texts = [" ".join(random.choice(WORDS, 4)) for _ in range(40)]
    for tenant in (make_tenant("acme"), make_tenant("globex")):
        with tenant_transaction(database.engine, [tenant]) as connection:
            upsert_nodes(
                connection,
                tenant,
                nodes=[
                    NodeDraft(str(n), "article", title=f"title {n}", content=text)
                    for n, text in enumerate(texts)
                ],
                embeddings=list(model.embed_queries(texts)),
                embedder_version=model.version,
            )
    return database


def reembed(database: LiveDatabase, embedder: TinyEmbedder | FakeEmbedder, *, accept: bool = False):
    gate = EmbedderGate(lambda version: TinyEmbedder(), accept=accept)
    return Reembedding(database.engine, "acme", embedder, gate).run()


def test_a_model_that_agrees_is_switched_to_and_the_figures_are_reported(
    embedded: LiveDatabase,
) -> None:
    for number in range(25):
        ask(embedded, "acme", f"{WORDS[number % 10]} {WORDS[number // 3]} {number}")
    found = reembed(embedded, TurnedEmbedder("turned")).comparison
    assert found is not None
    assert (found.source, found.questions, found.judged) == ("questions", 25, 0)
    # Tiny roundings aside: documents of the old model were embedded without their titles.
    assert found.overlap > 0.5


def test_a_model_that_loses_what_people_liked_is_refused_and_stays_staged(
    embedded: LiveDatabase,
) -> None:
    model = TinyEmbedder()
    for number in range(24):
        question = f"zz{number} {WORDS[number % 10]} {WORDS[number // 3]}"
        with tenant_transaction(embedded.engine, ["acme"]) as connection:
            [best, *_] = connection.exec_driver_sql(
                "select node_id from hybrid_search_nodes(%s, %b::vector, '{acme}', null)",
                (question, model.embed_query(question)),
            ).scalars()
        ask(embedded, "acme", question, liked=best)
    other = FakeEmbedder("random", 6)
    with pytest.raises(RegressionRefused, match="acme: MRR of what people liked falls from 1"):
        reembed(embedded, other)

    assert read_profile(embedded, "acme")[0] == model.version
    assert count_staged(embedded, "acme") == 40
    report = reembed(embedded, other, accept=True)
    assert (report.embedded, report.switched) == (0, 40)
    assert report.comparison is not None
    assert report.comparison.judged == 24
    assert read_profile(embedded, "globex")[0] == model.version


def test_where_the_old_model_is_gone_stored_vectors_stand_in(embedded: LiveDatabase) -> None:
    gate = EmbedderGate(lambda version: None)
    report = Reembedding(embedded.engine, "acme", TurnedEmbedder("turned"), gate).run()
    assert report.comparison is not None
    assert report.comparison.source == "vectors"
    assert report.comparison.questions == 40


def test_titles_stand_in_where_few_questions_are_kept(embedded: LiveDatabase) -> None:
    ask(embedded, "acme", "otter")
    found = reembed(embedded, TurnedEmbedder("turned")).comparison
    assert found is not None
    assert (found.source, found.questions) == ("titles", 40)


def test_a_sample_is_the_tenants_own_with_judged_questions_first(embedded: LiveDatabase) -> None:
    with owner_transaction(embedded.admin) as connection:
        [node] = connection.exec_driver_sql(
            "select min(node_id) from knowledge_nodes where tenant_id = 'acme'"
        ).scalars()
    ask(embedded, "acme", "judged", liked=node)
    ask(embedded, "acme", "newer")
    ask(embedded, "globex", "theirs")
    with tenant_transaction(embedded.engine, ["acme"]) as connection:
        sampled = sample_questions(connection, "acme", most=10)
        assert sampled == [
            SampledQuestion("judged", frozenset({node}), 1),
            SampledQuestion("newer"),
        ]
        assert sample_questions(connection, "globex", most=10) == []
        assert sample_titles(connection, "globex", most=10) == []
        assert len(sample_titles(connection, "acme", most=10)) == 10


# --- the figures ----------------------------------------------------------------------------


def test_the_figures_are_what_they_say() -> None:
    questions = [SampledQuestion("a", frozenset({1}), 3), SampledQuestion("b", frozenset({9}), 1)]
    pairs = [
        RankedPair((1, 2, 3, 4), (2, 1, 3, 4), exact=(1, 2)),
        RankedPair((9, 5), (5, 6), exact=(9, 5)),
    ]
    found = summarise_pairs("acme", "questions", questions, pairs=pairs)
    assert found is not None
    assert found.overlap == pytest.approx((1 + 1 / 2) / 2)
    assert found.old_mrr == 1.0
    assert found.new_mrr == pytest.approx(3 * (1 / 2) / 4)
    assert (found.old_recall, found.new_recall) == (1.0, 0.75)
    assert summarise_pairs("acme", "questions", [], pairs=[]) is None


@pytest.mark.parametrize(
    ("overlap", "judged", "mrr", "recall", "refused"),
    [
        (0.31, 0, None, None, False),
        (0.29, 0, None, None, True),
        (0.1, 20, (0.8, 0.76), None, False),
        (0.9, 20, (0.8, 0.74), None, True),
        (0.9, 19, (0.8, 0.1), None, False),
        (0.9, 0, None, (0.99, 0.91), False),
        (0.9, 0, None, (0.99, 0.89), True),
        (0.9, 0, None, (0.6, 0.7), False),
        (0.9, 0, None, (0.85, 0.845), False),
        (0.9, 0, None, (0.85, 0.83), True),
    ],
)
def test_the_limits_are_where_they_are_said_to_be(
    overlap: float,
    judged: int,
    mrr: tuple[float, float] | None,
    recall: tuple[float, float] | None,
    refused: bool,
) -> None:
    old_mrr, new_mrr = mrr or (None, None)
    old_recall, new_recall = recall or (None, None)
    comparison = Comparison(
        "acme", "questions", 50, overlap, judged, old_mrr, new_mrr, old_recall, new_recall
    )
    assert (find_regression(comparison) is not None) == refused
