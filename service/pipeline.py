"""The order of the steps, from a question to the nodes that answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from sqlalchemy import Engine

from service.db.candidates import Found, Phrasing, SearchPlan, describe_search, read_tenant_states
from service.db.engine import tenant_transaction
from service.embedding import Embedder
from service.llm.calls import MessagesClient
from service.retrieval.articles import restore_articles
from service.retrieval.cache import RetrievalCache, make_key
from service.retrieval.diversity import collapse_duplicates
from service.retrieval.expand import Expansion, Usage, describe_expansion, expand_question
from service.retrieval.experiment import Assignment, interleave
from service.retrieval.gate import Verdict, judge_confidence
from service.retrieval.linked import add_linked
from service.retrieval.multidoc import choose_documents
from service.retrieval.options import RetrievalOptions
from service.retrieval.prior import blend_ranks
from service.retrieval.quality import ScoreText, filter_quality, score_text
from service.retrieval.ranks import RankMemory
from service.retrieval.request import (
    Frame,
    RetrievalRequest,
    find_shared_settings,
    frame_request,
)
from service.retrieval.rerank import CrossEncoders, rerank
from service.retrieval.search import (
    Pool,
    check_embedder,
    describe_search_step,
    embed_phrasings,
    find_candidates,
    fuse_phrasings,
)
from service.retrieval.trace import Drop, Recorder, StepResult, Trace
from service.settings import Settings
from service.synthesis.egress import EgressRecorder
from service.types import Candidate, EgressConsent, Intent, Json, ScoredNode, Team

QueryType = Literal["vector_search", "confidence_gated_fallback"]
Step = Callable[[Sequence[Candidate]], StepResult]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question found; no candidates where the gate fired.

    assignment: the variant of the experiment it is part of, if of any.
    teams: the variant that chose a node, by node, where the lists of both were interleaved.
    own_settings: what the tenants have set of their own.
    """

    text: str
    candidates: tuple[Candidate, ...]
    query_type: QueryType
    confidence: float | None
    intent: Intent
    options: RetrievalOptions
    plan: SearchPlan
    usage: Usage = field(default_factory=Usage)
    fallbacks: tuple[str, ...] = ()
    trace: Trace | None = None
    assignment: Assignment | None = None
    teams: Mapping[int, Team] = field(default_factory=dict)
    own_settings: Mapping[str, Json] = field(default_factory=dict)

    @property
    def tried_settings(self) -> Mapping[str, Json]:
        """What variant b sets otherwise, where this is it."""
        if self.assignment is None or self.assignment.variant != "b":
            return {}
        return self.assignment.settings

    @property
    def statement(self) -> str:
        """The SQL of the search, to read or to run."""
        return describe_search(self.plan, self.text)


class Pipeline:
    """Retrieves by question; safe to share between threads."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        embedder: Embedder,
        claude: MessagesClient | None = None,
        consent: EgressConsent = "policy",
        cache: RetrievalCache[Retrieval] | None = None,
        ranks: RankMemory | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._embedder = embedder
        self._claude = claude
        self._consent = consent
        self._cross_encoders = CrossEncoders(settings.reranker_models.split(","))
        self._ranks = RankMemory() if ranks is None else ranks
        self._cache = RetrievalCache[Retrieval]() if cache is None else cache

    def retrieve(self, request: RetrievalRequest) -> Retrieval:
        """Return what a question finds, from memory if it was asked a moment ago."""
        frame = self.prepare(request)
        if frame.rival is None:
            return self._retrieve(frame)
        ours, theirs = self._retrieve(frame), self._retrieve(frame.rival)
        return _interleave(ours, theirs, frame=frame)

    def _retrieve(self, frame: Frame) -> Retrieval:
        key = make_key(frame)
        known = self._cache.get(key)
        if known is not None:
            return replace(_mark_cached(known), assignment=frame.assignment)
        recorder = Recorder(frame.request.text, enabled=frame.options.trace)
        expansion = self.expand(frame, recorder=recorder)
        pool = self.search(frame, expansion, recorder=recorder)
        found = self.refine(frame, pool, recorder=recorder)
        if expansion.fallback is None:  # Claude may be back in a moment
            self._cache.put(key, found)
        return replace(found, usage=expansion.usage)

    def prepare(self, request: RetrievalRequest) -> Frame:
        """Decide what can be decided before searching."""
        with tenant_transaction(self._engine, request.tenant_ids) as connection:
            states = read_tenant_states(connection, request.tenant_ids)
        return frame_request(request, self._settings, states=states)

    def expand(self, frame: Frame, *, recorder: Recorder) -> Expansion:
        """Return the phrasings to search with: the question alone unless expansion is on."""
        if not frame.options.multi_query:
            return Expansion((frame.request.text,))
        record = EgressRecorder(
            self._engine, frame.request.tenant_ids, "expansion", consent=self._consent
        )
        expansion = expand_question(self._claude, frame.request.text, record=record)
        recorder.run("expand", lambda _: describe_expansion(expansion))
        return expansion

    def search(self, frame: Frame, expansion: Expansion, *, recorder: Recorder) -> Pool:
        """Return the pool: what all phrasings find, each node once, best first."""
        return fuse_phrasings(self.search_each(frame, expansion, recorder=recorder))

    def search_each(self, frame: Frame, expansion: Expansion, *, recorder: Recorder) -> list[Found]:
        """Return what each phrasing finds, best first: one embedding batch, one statement."""
        phrasings = self._embed(frame, expansion.phrasings)
        found: list[Found] = []

        def search(_: Sequence[Candidate]) -> StepResult:
            found.extend(find_candidates(self._engine, frame, phrasings=phrasings))
            return describe_search_step(found, frame=frame, phrasings=expansion.phrasings)

        recorder.run("search", search)
        return found

    def refine(
        self,
        frame: Frame,
        pool: Pool,
        *,
        recorder: Recorder,
        score_quality: ScoreText = score_text,
    ) -> Retrieval:
        """Gate the pool, then take the steps of `_list_steps`."""
        options = frame.options
        verdict = judge_confidence(pool.candidates, threshold=options.confidence_threshold)
        gate = partial(_pass_gate, verdict=verdict, options=options)
        candidates = recorder.run("gate", gate, pool.candidates)
        for name, wanted, step in self._list_steps(frame, pool, score_quality):
            if wanted and candidates:
                candidates = recorder.run(name, step, candidates)
        return Retrieval(
            text=frame.request.text,
            candidates=tuple(candidates),
            query_type="confidence_gated_fallback" if verdict.fires else "vector_search",
            confidence=verdict.confidence,
            intent=frame.intent,
            options=options,
            plan=frame.plan,
            fallbacks=recorder.fallbacks,
            trace=recorder.finish(),
            assignment=frame.assignment,
            own_settings=find_shared_settings(frame.states),
        )

    def _list_steps(
        self, frame: Frame, pool: Pool, score: ScoreText
    ) -> Sequence[tuple[str, bool, Step]]:
        """Every step after the gate, in order: its name, whether it is wanted, what it does."""
        options, engine = frame.options, self._engine
        walk = partial(self._walk, frame=frame, beyond=pool.beyond)
        rerank_step = partial(rerank, frame=frame, cross_encoders=self._cross_encoders)
        prior = partial(blend_ranks, engine=engine, frame=frame, memory=self._ranks)
        documents = partial(
            choose_documents,
            num_docs=options.num_docs,
            max_sections=options.max_sections,
            min_relevance=options.min_relevance,
        )
        quality = partial(_filter_quality, engine=engine, frame=frame, score=score)
        return (
            ("walk", frame.walks, walk),
            ("rerank", options.reranker != "none", rerank_step),
            ("graph", options.graph_prior, prior),
            ("multidoc", options.multidoc, documents),
            ("quality", True, quality),
            ("diversity", True, collapse_duplicates),
            ("cut", not options.multidoc, partial(_cut, most=frame.request.max_results)),
        )

    def _walk(
        self, candidates: Sequence[Candidate], *, frame: Frame, beyond: Sequence[ScoredNode]
    ) -> StepResult:
        text = frame.request.text
        vector = None if frame.request.keywords_only else self._embedder.embed_query(text)
        phrasing = Phrasing(text, vector)
        return add_linked(
            candidates, engine=self._engine, frame=frame, phrasing=phrasing, beyond=beyond
        )

    def _embed(self, frame: Frame, texts: Sequence[str]) -> list[Phrasing]:
        if frame.request.keywords_only:
            return [Phrasing(text) for text in texts]
        check_embedder(self._embedder, frame.states)
        return embed_phrasings(self._embedder, texts)


def _interleave(ours: Retrieval, theirs: Retrieval, *, frame: Frame) -> Retrieval:
    """Return the retrieval of both variants as one: told of as variant a, found by both."""
    assert frame.assignment is not None
    drafted = interleave(ours.candidates, theirs.candidates, draw=frame.assignment.draw)
    told = ours if ours.candidates or not theirs.candidates else theirs
    return replace(
        told,
        candidates=drafted.candidates,
        teams=drafted.teams,
        assignment=frame.assignment,
        usage=ours.usage.plus(theirs.usage),
        fallbacks=tuple(dict.fromkeys((*ours.fallbacks, *theirs.fallbacks))),
    )


def _mark_cached(known: Retrieval) -> Retrieval:
    return replace(known, trace=known.trace and replace(known.trace, cached=True))


def _pass_gate(
    candidates: Sequence[Candidate], *, verdict: Verdict, options: RetrievalOptions
) -> StepResult:
    reason = f"best confidence is below {options.confidence_threshold:g}"
    drops = (Drop(each.node.node_id, reason) for each in candidates if verdict.fires)
    return StepResult(
        [] if verdict.fires else list(candidates),
        tuple(drops),
        notes={"confidence": verdict.confidence, "fires": verdict.fires},
    )


def _filter_quality(
    candidates: Sequence[Candidate], *, engine: Engine, frame: Frame, score: ScoreText
) -> StepResult:
    result = filter_quality(
        candidates,
        question=frame.request.text,
        threshold=frame.options.quality_threshold,
        score=score,
    )
    if result.candidates:
        return result
    articles = restore_articles(candidates, engine=engine, frame=frame)
    return replace(result, candidates=articles, fallback="quality: whole articles instead")


def _cut(candidates: Sequence[Candidate], *, most: int) -> StepResult:
    drops = (Drop(each.node.node_id, f"beyond the best {most}") for each in candidates[most:])
    return StepResult(list(candidates[:most]), tuple(drops))
