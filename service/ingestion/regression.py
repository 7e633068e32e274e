"""The gate before a switch: old and new results of real questions, and how much may be lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, Engine

from service.db.ann_index import AnnPath
from service.db.comparing import (
    IndexedTenant,
    RankedPair,
    SampledQuestion,
    ann_nearest,
    compare_embedders,
    list_indexed_tenants,
    sample_questions,
    sample_titles,
    sample_vectors,
)
from service.db.engine import know_vectors, owner_transaction, tenant_transaction
from service.embedding import Embedder
from service.errors import ModelUnavailable, RegressionRefused
from service.types import Vector

MOST_QUESTIONS = 200
LEAST_QUESTIONS = 20
SHOWN = 10
SEARCHED = 20
MOST_MRR_DROP = 0.05
# Two models agree on far fewer than all results even where both are good: below this, one fails.
LEAST_OVERLAP = 0.3
LEAST_RECALL = 0.9
# Equal vectors may come in any order, so two builds of one index differ by as much.
RECALL_NOISE = 0.01

Source = Literal["questions", "titles", "vectors"]
FindEmbedder = Callable[[str | None], Embedder | None]
"""Finds the embedder of a version; None where it cannot be had."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Old against new on a tenant's questions, or on what stood in for them.

    overlap: mean share of the first ten that both have. MRR: of the first node that people found
    good, weighted by how many they were, over the `judged` questions. Recall: share of the twenty
    nearest that an index finds.
    """

    tenant_id: str
    source: Source
    questions: int
    overlap: float
    judged: int
    old_mrr: float | None
    new_mrr: float | None
    old_recall: float | None = None
    new_recall: float | None = None


@dataclass(frozen=True, slots=True)
class _Sample:
    """What is asked: the questions with their vectors by each side."""

    source: Source
    questions: Sequence[SampledQuestion]
    present: Sequence[Vector]
    following: Sequence[Vector]
    itself: Sequence[int | None]


def compare_indexes(
    connection: Connection, *, old: AnnPath, new: AnnPath, find_embedder: FindEmbedder
) -> list[Comparison]:
    """Compare two ways through the ANN index for every tenant that is searched by it."""
    tenants = list_indexed_tenants(connection)
    most = max(LEAST_QUESTIONS, MOST_QUESTIONS // max(1, len(tenants)))
    return [
        _compare_index(connection, tenant, paths=(old, new), most=most, find_embedder=find_embedder)
        for tenant in tenants
    ]


def check_indexes(
    engine: Engine, *, old: AnnPath, new: AnnPath, find_embedder: FindEmbedder, accept: bool
) -> list[Comparison]:
    """Compare as the owner; RegressionRefused where results get worse and nobody accepts it."""
    with owner_transaction(engine) as connection:
        know_vectors(connection)
        found = compare_indexes(connection, old=old, new=new, find_embedder=find_embedder)
    if not accept:
        refuse_regressions(found)
    return found


@dataclass(frozen=True, slots=True)
class EmbedderGate:
    """Compares a tenant's embedder with its staged one before the switch."""

    find_embedder: FindEmbedder
    accept: bool = False

    def check(
        self, engine: Engine, tenant_id: str, *, version: str | None, following: Embedder
    ) -> Comparison | None:
        """Return how they compare; None where nothing was embedded before."""
        if version in (None, following.version):
            return None
        with tenant_transaction(engine, [tenant_id]) as connection:
            sample = _sample(
                connection,
                tenant_id,
                present=self.find_embedder(version),
                following=following,
                most=MOST_QUESTIONS,
            )
            pairs = compare_embedders(
                connection,
                tenant_id,
                texts=[None if sample.source == "vectors" else q.text for q in sample.questions],
                present=sample.present,
                following=sample.following,
                top_k=SHOWN + (sample.source == "vectors"),
            )
        found = summarise_pairs(
            tenant_id, sample.source, sample.questions, pairs=_drop(sample, pairs)
        )
        if found is not None and not self.accept:
            refuse_regressions([found])
        return found


def refuse_regressions(comparisons: Sequence[Comparison]) -> None:
    """Raise RegressionRefused if any tenant's results get worse than the limits allow."""
    reasons = [
        f"{each.tenant_id}: {reason}"
        for each in comparisons
        if (reason := find_regression(each)) is not None
    ]
    if reasons:
        raise RegressionRefused(
            f"Results would get worse, so nothing was switched. {'; '.join(reasons)}.",
            hint="Look at the figures. With --accept-changes the same command switches all the "
            "same, with --abort it drops what was prepared.",
        )


def find_regression(comparison: Comparison) -> str | None:
    """Say what gets worse beyond the limits; None if nothing does.

    What people liked decides where enough of it is known. Without it an index must find what is
    nearest, unless the old one finds less; another model must share some results with the old.
    """
    old, new = comparison.old_mrr, comparison.new_mrr
    if old is not None and new is not None and comparison.judged >= LEAST_QUESTIONS:
        if old - new > MOST_MRR_DROP:
            return f"MRR of what people liked falls from {old:.3f} to {new:.3f}"
        return None
    recalls = comparison.old_recall, comparison.new_recall
    if recalls[0] is not None and recalls[1] is not None:
        if recalls[1] < LEAST_RECALL and recalls[0] - recalls[1] > RECALL_NOISE:
            return f"recall falls from {recalls[0]:.3f} to {recalls[1]:.3f}"
        return None
    if comparison.overlap < LEAST_OVERLAP:
        return f"only {comparison.overlap:.2f} of the first {SHOWN} results stay"
    return None


def summarise_pairs(
    tenant_id: str,
    source: Source,
    questions: Sequence[SampledQuestion],
    *,
    pairs: Sequence[RankedPair],
) -> Comparison | None:
    """Return the figures of all questions; None without any."""
    if not pairs:
        return None
    judged = [(q, pair) for q, pair in zip(questions, pairs, strict=True) if q.liked]
    people = sum(q.people for q, _ in judged)

    def mean(ranks: Sequence[float]) -> float | None:
        weighted = zip(judged, ranks, strict=True)
        return sum(q.people * rank for (q, _), rank in weighted) / people if people else None

    exact = [pair for pair in pairs if pair.exact]
    return Comparison(
        tenant_id,
        source,
        questions=len(pairs),
        overlap=sum(_share(p.new[:SHOWN], p.old[:SHOWN]) for p in pairs) / len(pairs),
        judged=len(judged),
        old_mrr=mean([_reciprocal_rank(pair.old, q.liked) for q, pair in judged]),
        new_mrr=mean([_reciprocal_rank(pair.new, q.liked) for q, pair in judged]),
        old_recall=_mean_recall([pair.old for pair in exact], exact),
        new_recall=_mean_recall([pair.new for pair in exact], exact),
    )


def _compare_index(
    connection: Connection,
    tenant: IndexedTenant,
    *,
    paths: tuple[AnnPath, AnnPath],
    most: int,
    find_embedder: FindEmbedder,
) -> Comparison:
    embedder = find_embedder(tenant.embedder_version)
    sample = _sample(connection, tenant.tenant_id, present=embedder, following=embedder, most=most)
    pairs = ann_nearest(
        connection, tenant.tenant_id, vectors=sample.present, paths=paths, top_k=SEARCHED
    )
    found = summarise_pairs(tenant.tenant_id, sample.source, sample.questions, pairs=pairs)
    assert found is not None, "an indexed tenant has vectors"
    return found


def _sample(
    connection: Connection,
    tenant_id: str,
    *,
    present: Embedder | None,
    following: Embedder | None,
    most: int,
) -> _Sample:
    """Take questions, else titles, else stored vectors: those need no model."""
    if present is not None and following is not None:
        source: Source = "questions"
        questions = sample_questions(connection, tenant_id, most=most)
        if len(questions) < LEAST_QUESTIONS:
            source, questions = "titles", sample_titles(connection, tenant_id, most=most)
        if len(questions) >= LEAST_QUESTIONS:
            texts = [question.text for question in questions]
            old = present.embed_queries(texts)
            new = old if following is present else following.embed_queries(texts)
            return _Sample(source, questions, list(old), list(new), [None] * len(texts))
    vectors = [
        each
        for each in sample_vectors(connection, tenant_id, most=most)
        if following is present or each.following is not None
    ]
    return _Sample(
        "vectors",
        [SampledQuestion("")] * len(vectors),
        [each.present for each in vectors],
        [each.present if each.following is None else each.following for each in vectors],
        [each.node_id for each in vectors],
    )


def _drop(sample: _Sample, pairs: Sequence[RankedPair]) -> list[RankedPair]:
    """Take a node out of what its own vector finds: it is first on both sides."""
    return [
        RankedPair(
            tuple(node for node in pair.old if node != itself),
            tuple(node for node in pair.new if node != itself),
        )
        for itself, pair in zip(sample.itself, pairs, strict=True)
    ]


def _share(found: Sequence[int], wanted: Sequence[int]) -> float:
    longest = max(len(found), len(wanted))
    return len(set(found) & set(wanted)) / longest if longest else 1.0


def _mean_recall(found: Sequence[Sequence[int]], pairs: Sequence[RankedPair]) -> float | None:
    if not pairs:
        return None
    shares = (
        len(set(ids) & set(pair.exact or ())) / len(pair.exact or ())
        for ids, pair in zip(found, pairs, strict=True)
    )
    return sum(shares) / len(pairs)


def _reciprocal_rank(ids: Sequence[int], liked: frozenset[int]) -> float:
    places = [place for place, node in enumerate(ids[:SHOWN], start=1) if node in liked]
    return 1 / places[0] if places else 0.0


def make_finder(load: Callable[[str], Embedder], *known: Embedder) -> FindEmbedder:
    """Return what finds an embedder among those known, or loads the model the version names."""
    found: dict[str, Embedder | None] = {each.version: each for each in known}

    def find(version: str | None) -> Embedder | None:
        if version is None:
            return None
        if version not in found:
            found[version] = _load_version(load, version)
        return found[version]

    return find


def _load_version(load: Callable[[str], Embedder], version: str) -> Embedder | None:
    try:
        loaded = load(version.rpartition("@")[0] or version)
    except ModelUnavailable:
        return None
    return loaded if loaded.version == version else None
