"""KnowledgeGraphAgent: the pipeline as one object that answers questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from service.answering import Answerer
from service.db.candidates import read_titled_nodes
from service.db.context import read_nodes
from service.db.database import DATABASE, Database, open_database
from service.db.engine import (
    open_admin_engine,
    owner_transaction,
    refuse_writes,
    tenant_transaction,
)
from service.db.registry import list_tenants
from service.embedding import Embedder, load_embedder
from service.errors import InvalidInput
from service.llm.calls import MessagesClient
from service.llm.messages import open_client
from service.packing import Pack
from service.pipeline import Pipeline, Retrieval
from service.retrieval.expand import Expansion, Usage, describe_expansion, expand_question
from service.retrieval.gate import CONFIDENCE_THRESHOLD
from service.retrieval.options import clamp_results
from service.retrieval.quality import QUALITY_THRESHOLD, STOP_WORDS, score_text
from service.retrieval.request import Frame, RetrievalRequest
from service.retrieval.results import (
    Result,
    group_results,
    merge_results,
    read_similarity,
    to_candidates,
    to_results,
)
from service.retrieval.search import Pool, log_failed_search
from service.retrieval.trace import Recorder
from service.settings import Settings, load_settings, override_settings
from service.synthesis.answer import Answer, Question, answer_question
from service.synthesis.claude import Writer
from service.synthesis.context import Source, read_sources
from service.synthesis.egress import EgressRecorder
from service.synthesis.fewshot import Example
from service.types import Candidate, EgressPurpose, Node, SearchFilters

DEFAULT_TENANT = "default"


@dataclass
class _Call:
    """What one query gathers on its way through methods that may be replaced."""

    recorder: Recorder
    usage: Usage
    pack: Pack | None = None
    answer: Answer | None = None


_CALL: ContextVar[_Call | None] = ContextVar("call", default=None)


class KnowledgeGraphAgent:
    """Answers questions from what a tenant has ingested; close it, or use it in `with`.

    `claude`, `semantic_search` and the methods with an underscore are looked up when they are
    called, so they may be replaced on the object.

    Data residency: `enable_multi_query=True` sends each question, cut to 500 characters, to the
    Anthropic API; a key sends question and context there for the answer. Leave both out where
    questions may not leave the machine.
    """

    CONTENT_QUALITY_THRESHOLD: float = QUALITY_THRESHOLD
    CONTEXT_CONFIDENCE_THRESHOLD: float = CONFIDENCE_THRESHOLD
    STOP_WORDS: frozenset[str] = STOP_WORDS

    def __init__(  # noqa: PLR0917 - the positions of the first twelve are promised
        self,
        db_path: str | Path,
        anthropic_api_key: str | None = None,
        read_only: bool = True,
        use_enhancements: bool = True,
        few_shot_path: str | Path | None = None,
        enable_reranker: bool = True,
        enable_multidoc: bool = True,
        enable_fewshot: bool = True,
        synthesis_model: str | None = None,
        cypher_pack_path: str | Path | None = None,
        enable_multi_query: bool = False,
        enable_cross_encoder: bool = False,
        *,
        tenant_id: str | None = None,
        groups: Sequence[str] = (),
        dataset_name: str | None = None,
        num_docs: int = 5,
        max_sections: int = 3,
        min_relevance: float = 0.7,
        alpha: float = 0.7,
        beta: float = 0.3,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Open a database URL, or a folder for the embedded server; cypher_pack_path is unused."""
        self.read_only = read_only
        self.use_enhancements = use_enhancements
        self.few_shot_path = few_shot_path
        self.enable_reranker = use_enhancements and enable_reranker
        self.enable_multidoc = use_enhancements and enable_multidoc
        self.enable_fewshot = use_enhancements and enable_fewshot
        self.enable_cross_encoder = use_enhancements and enable_cross_encoder
        self.enable_multi_query = enable_multi_query
        self.cypher_pack_path = cypher_pack_path
        self.groups = tuple(groups)
        self.dataset_name = dataset_name
        self.num_docs = num_docs
        self.max_sections = max_sections
        self.min_relevance = min_relevance
        self.alpha = alpha
        self.beta = beta
        self._settings = _place_settings(settings or load_settings(), db_path)
        self.synthesis_model = synthesis_model or self._settings.synthesis_model
        self.claude: MessagesClient | None = None
        if anthropic_api_key:
            self.claude = open_client(anthropic_api_key, self._settings.anthropic_base_url)
        with ExitStack() as opening:
            database = opening.enter_context(open_database(self._settings))
            self.tenant_id = tenant_id or _find_tenant(database)
            if read_only:
                refuse_writes(database.engine)
            self._engine = database.engine
            model = embedder or load_embedder(self._settings.embedding_model)
            self._embedder = model
            self._pipeline = Pipeline(self._engine, self._settings, embedder=model)
            self._answerer = Answerer(
                self._engine, self._settings, embedder=model, pipeline=self._pipeline
            )
            self._open = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the database; an embedded server stops when nobody else uses it."""
        self._open.close()

    # --- asking --------------------------------------------------------------------------------

    def query(self, question: str, max_results: int = 5) -> dict[str, Any]:
        """Retrieve and answer; `mode` says who wrote it: Claude, or the sources' own sentences."""
        with self._calling(question) as call:
            found, _ = self._vector_primary_retrieve(question, max_results)
            retrieval = self._refine(question, found["raw"], max_results=max_results, call=call)
            results = to_results(retrieval.candidates)
            if retrieval.query_type == "confidence_gated_fallback":
                answer = self._synthesize_answer_minimal(question)
            else:
                context = self._build_synthesis_context(question, results)
                answer = self._synthesize_answer(question, context)
            return _respond(answer, results, retrieval=retrieval, call=call)

    def semantic_search(self, query: str, top_k: int = 5) -> list[Result]:
        """Return the best hits, one a title, each with raw `similarity` and `confidence`."""
        frame = self._frame(query, max_results=top_k)
        pool = self._pipeline.search(frame, Expansion((query,)), recorder=_recorder(query))
        return group_results(pool.candidates)[:top_k]

    # --- the steps, each replaceable -------------------------------------------------------------

    def _vector_primary_retrieve(
        self, question: str, max_results: int = 5
    ) -> tuple[dict[str, Any], float]:
        """Return sources and raw results, and the best confidence among them.

        With the cross-encoder on, twice as many results are fetched for it to choose from.
        """
        wanted = clamp_results(max_results) * (2 if self.enable_cross_encoder else 1)
        if self.enable_multi_query:
            raw = self._multi_query_retrieve(question, max_results=wanted)
        else:
            raw = self.semantic_search(question, top_k=wanted)
        found = {"sources": _titles(raw), "entities": [], "facts": [], "raw": list(raw)}
        return found, max(map(_read_confidence, raw), default=0.0)

    def _multi_query_retrieve(self, question: str, max_results: int = 5) -> list[Result]:
        """Search with the question and two phrasings of Claude's; one result a title, best first.

        Data residency: the question, cut to 500 characters, is sent to the Anthropic API.
        """
        wanted = clamp_results(max_results)
        expansion = expand_question(self.claude, question, record=self._record("expansion"))
        _note_expansion(expansion)
        if self._replaced("semantic_search"):
            lists = _search_each(
                expansion.phrasings, lambda text: self.semantic_search(text, top_k=wanted)
            )
        else:
            frame = self._frame(question, max_results=wanted)
            found = self._pipeline.search_each(frame, expansion, recorder=_recorder(question))
            lists = [group_results(each.candidates) for each in found]
        merged = merge_results(result for results in lists for result in results)
        return sorted(merged, key=read_similarity, reverse=True)[:wanted]

    def _score_section_quality(self, content: str, question: str) -> float:
        """Return the quality of a section for a question, in [0, 1]."""
        return score_text(content, question)

    def _fetch_source_text(
        self, source_titles: Sequence[str], max_articles: int = 5, question: str | None = None
    ) -> str:
        """Return the articles' sections as text; with a question, only those good enough for it.

        Where no section of any article is good enough, the articles' own content is returned.
        """
        titles = list(dict.fromkeys(source_titles))[:max_articles]
        with tenant_transaction(self._engine, [self.tenant_id]) as connection:
            nodes = read_titled_nodes(
                connection, [self.tenant_id], titles=titles, acl_groups=self.groups
            )
        split = {node.parent_id for node in nodes}
        sections = [node for node in nodes if node.node_id not in split]
        if question is not None:
            sections = [node for node in sections if self._is_good(node, question)]
        articles = [node for node in nodes if node.parent_id is None]
        return "\n\n".join(_render(node) for node in sections or articles if node.content)

    def _build_synthesis_context(self, question: str, results: Sequence[Mapping[str, Any]]) -> str:
        """Return what Claude reads: the results packed, or their articles if they have no text."""
        packed = self._answerer.pack(
            to_candidates(results), self._request(question), multi_document=self.enable_multidoc
        )
        if packed is None or not packed.blocks:
            return self._fetch_source_text(_titles(results), question=question)
        call = _CALL.get()
        if call is not None:
            call.pack = packed
        return packed.text

    def _synthesize_answer(self, question: str, context: str) -> str:
        """Return Claude's answer by the context; without Claude, the context's own sentences."""
        call = _CALL.get()
        if call is not None and call.pack is not None and call.pack.text == context:
            return self._write(question, read_sources(call.pack))
        sources = (Source(1, (), title="Context", text=context),) if context.strip() else ()
        return self._write(question, sources)

    def _synthesize_answer_minimal(self, question: str) -> str:
        """Return Claude's answer by its own knowledge; without Claude, that nothing was found."""
        return self._write(question, ())

    # --- inside ----------------------------------------------------------------------------------

    def _refine(
        self, question: str, raw: Sequence[Result], *, max_results: int, call: _Call
    ) -> Retrieval:
        frame = self._frame(question, max_results=max_results)
        return self._pipeline.refine(
            frame,
            Pool(self._attach_vectors(to_candidates(raw))),
            recorder=call.recorder,
            score_quality=self._score_section_quality,
        )

    def _frame(self, question: str, *, max_results: int) -> Frame:
        changes: dict[str, object] = {
            "reranker": "crossencoder" if self.enable_cross_encoder else "none",
            "rerank_topk": clamp_results(max_results),
            "graph_prior": self.enable_reranker,
            "graph_basis": "similarity",
            "multidoc": self.enable_multidoc,
            "alpha": self.alpha,
            "beta": self.beta,
            "num_docs": self.num_docs,
            "max_sections": self.max_sections,
            "min_relevance": self.min_relevance,
        }
        if not self.enable_multidoc:
            changes["walk_weight"] = 0.0
        # The tenant's own thresholds count unless those of the class were changed.
        if self.CONTEXT_CONFIDENCE_THRESHOLD != CONFIDENCE_THRESHOLD:
            changes["confidence_threshold"] = self.CONTEXT_CONFIDENCE_THRESHOLD
        if self.CONTENT_QUALITY_THRESHOLD != QUALITY_THRESHOLD:
            changes["quality_threshold"] = self.CONTENT_QUALITY_THRESHOLD
        request = replace(self._request(question), max_results=max_results, changes=changes)
        return self._pipeline.prepare(request)

    def _request(self, question: str) -> RetrievalRequest:
        return RetrievalRequest(
            question,
            (self.tenant_id,),
            dataset_name=self.dataset_name,
            filters=SearchFilters(acl_groups=self.groups),
        )

    def _attach_vectors(self, candidates: list[Candidate]) -> list[Candidate]:
        """Read the stored vectors, which results do not carry, to find near-duplicates by."""
        node_ids = [each.node.node_id for each in candidates if each.node.node_id > 0]
        if not node_ids:
            return candidates
        with tenant_transaction(self._engine, [self.tenant_id]) as connection:
            stored = read_nodes(
                connection,
                [self.tenant_id],
                node_ids=node_ids,
                with_embeddings=True,
                acl_groups=self.groups,
            )
        vectors = {each.node.node_id: each.embedding for each in stored}
        return [replace(each, embedding=vectors.get(each.node.node_id)) for each in candidates]

    def _is_good(self, node: Node, question: str) -> bool:
        quality = self._score_section_quality(node.content, question)
        return quality >= self.CONTENT_QUALITY_THRESHOLD

    def _write(self, question: str, sources: tuple[Source, ...]) -> str:
        """Let Claude write, who is asked by whoever brought the key; the rest is for `query`."""
        examples: list[Example] = []
        if sources and self.enable_fewshot:
            path = None if self.few_shot_path is None else Path(self.few_shot_path)
            examples = self._answerer.find_examples(self._request(question), path=path)
        writer = Writer(
            self.claude,
            model=self.synthesis_model,
            max_tokens=self._settings.synthesis_max_tokens,
            record=self._record("synthesis"),
        )
        asked = Question(question, sources, query_type="", examples=examples)
        answer = answer_question(asked, writer=writer, embedder=self._embedder)
        _spend(answer.token_usage)
        call = _CALL.get()
        if call is not None:
            call.answer = answer
        return answer.answer

    def _record(self, purpose: EgressPurpose) -> EgressRecorder:
        return EgressRecorder(self._engine, (self.tenant_id,), purpose, consent="key")

    def _replaced(self, name: str) -> bool:
        return name in vars(self) or getattr(type(self), name) is not _ORIGINALS[name]

    @contextmanager
    def _calling(self, question: str) -> Iterator[_Call]:
        recorder = Recorder(question, enabled=self._settings.retrieval_trace)
        call = _Call(recorder, Usage())
        token = _CALL.set(call)
        try:
            yield call
        finally:
            _CALL.reset(token)


_ORIGINALS: dict[str, object] = {"semantic_search": KnowledgeGraphAgent.semantic_search}


def _place_settings(settings: Settings, db_path: str | Path) -> Settings:
    """Return the settings with the database of the path: a URL, or a folder of the embedded one."""
    place = str(db_path)
    if not place.strip():
        raise InvalidInput("db_path is empty.", hint="Give a database URL or a folder.")
    if "://" in place:
        return override_settings(settings, {"database_url": place}, place="db_path")
    values = {"database_url": None, "admin_database_url": None, "contextforge_data_dir": place}
    return override_settings(settings, values, place="db_path")


def _find_tenant(database: Database) -> str:
    """Return the only tenant of an embedded database; another server does not tell its tenants."""
    if database.server is None:
        return DEFAULT_TENANT
    engine = open_admin_engine(database.server.admin_url(DATABASE))
    try:
        with owner_transaction(engine) as connection:
            tenants = [tenant.tenant_id for tenant in list_tenants(connection)]
    finally:
        engine.dispose()
    return tenants[0] if len(tenants) == 1 else DEFAULT_TENANT


def _search_each(
    phrasings: Sequence[str], search: Callable[[str], list[Result]]
) -> list[list[Result]]:
    """Search with each phrasing, skipping what fails; raise only if all do."""
    found: list[list[Result]] = []
    failure: Exception | None = None
    for text in phrasings:
        try:
            found.append(search(text))
        except Exception as exc:  # noqa: BLE001 - a replaced search may raise whatever it likes
            failure = exc
            log_failed_search(text, exc)
    if failure is not None and not found:
        raise failure
    return found


def _respond(
    answer: str, results: Sequence[Result], *, retrieval: Retrieval, call: _Call
) -> dict[str, Any]:
    # Whoever replaced the methods that write has an answer that nothing else is known of.
    made = call.answer if call.answer is not None and call.answer.answer == answer else None
    response: dict[str, Any] = {
        "answer": answer,
        "sources": _titles(results),
        "entities": [] if made is None else list(made.entities),
        "facts": [] if made is None else list(made.facts),
        "cypher_query": retrieval.statement,
        "query_type": retrieval.query_type,
        "token_usage": asdict(call.usage),
        "citations": [] if made is None else [asdict(each) for each in made.citations],
        "mode": None if made is None else made.mode,
        "notice": None if made is None else made.notice,
    }
    if retrieval.trace is not None:
        response["trace"] = retrieval.trace.to_json()
    return response


def _titles(results: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(each["title"]) for each in results if each.get("title")))


def _read_confidence(result: Mapping[str, Any]) -> float:
    confidence = result.get("confidence")
    return read_similarity(result) if confidence is None else float(confidence)


def _render(node: Node) -> str:
    heading = f"{node.title}: {node.header}" if node.header else node.title
    return f"{heading}\n{node.content}"


def _recorder(question: str) -> Recorder:
    call = _CALL.get()
    return Recorder(question, enabled=False) if call is None else call.recorder


def _note_expansion(expansion: Expansion) -> None:
    _recorder(expansion.phrasings[0]).run("expand", lambda _: describe_expansion(expansion))
    _spend(expansion.usage)


def _spend(usage: Usage) -> None:
    call = _CALL.get()
    if call is not None:
        call.usage = call.usage.plus(usage)
