"""The pipeline as a searcher: a question goes through every step, and nothing is remembered."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from service.answering import Answerer
from service.db.engine import tenant_transaction
from service.embedding import Embedder, FloatMatrix, FloatVector, OnProgress
from service.embedding.batching import stack_vectors
from service.evaluation.beir import Question
from service.evaluation.contexts import EMPTY, PackedContext, describe_pack
from service.evaluation.options import Retrieval
from service.evaluation.searchers import Collection, DocumentNames, Ranking, rank_documents
from service.packing import Pack
from service.pipeline import Pipeline
from service.pipeline import Retrieval as Found
from service.retrieval.expand import Expansion
from service.retrieval.options import MOST_RESULTS, read_options
from service.retrieval.request import RetrievalRequest
from service.retrieval.trace import Recorder
from service.settings import Settings
from service.types import Vector


@dataclass(frozen=True, slots=True)
class PreparedEmbedder:
    """An embedder that knows the vectors of its questions; other texts go to the real one."""

    embedder: Embedder
    known: dict[str, FloatVector] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """That of the real one."""
        return self.embedder.version

    @property
    def dimension(self) -> int:
        """That of the real one."""
        return self.embedder.dimension

    def embed_query(self, text: str) -> FloatVector:
        """The prepared vector, else a new one."""
        return self.known[text] if text in self.known else self.embedder.embed_query(text)

    def embed_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """One row a question."""
        return stack_vectors([self.embed_query(text) for text in texts], self.dimension)

    def embed_documents(
        self, texts: Sequence[str], on_progress: OnProgress | None = None
    ) -> FloatMatrix:
        """One row a text."""
        return self.embedder.embed_documents(texts, on_progress)


class PipelineSearcher:
    """Asks the pipeline; its steps are timed one by one, and from first to last as `total`.

    phrasings: other ways to ask a question, by its id, in the place of those Claude would write.
    """

    def __init__(
        self,
        collection: Collection,
        retrieval: Retrieval,
        *,
        embedder: Embedder,
        served: Settings,
        phrasings: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._collection = collection
        self._retrieval = retrieval
        self._embedder = PreparedEmbedder(embedder)
        self._pipeline = Pipeline(collection.engine, retrieval.settings, embedder=self._embedder)
        self._answerer = Answerer(
            collection.engine,
            retrieval.settings,
            embedder=self._embedder,
            pipeline=self._pipeline,
        )
        self._changes = _find_changes(retrieval, served)
        self._names = DocumentNames(collection.tenant_id)
        self._phrasings = phrasings or {}

    def search(self, question: Question, embedding: Vector) -> Ranking:
        """Rank documents for one question; none where the gate fires."""
        self._embedder.known[question.text] = embedding
        place = self._collection
        request = RetrievalRequest(
            question.text,
            (place.tenant_id,),
            max_results=MOST_RESULTS,
            node_types=place.node_types,
            dataset_name=question.dataset or place.dataset_name,
            changes=self._changes,
        )
        started = time.perf_counter()
        frame = self._pipeline.prepare(request)
        recorder = Recorder(request.text, enabled=True)
        others = self._phrasings.get(question.query_id, ())
        expansion = Expansion((question.text, *others))
        pool = self._pipeline.search(frame, expansion, recorder=recorder)
        found = self._pipeline.refine(frame, pool, recorder=recorder)
        packed = self._pack(found, request) if self._retrieval.packed else None
        seconds = {"total": time.perf_counter() - started}
        for step in found.trace.steps if found.trace is not None else ():
            seconds[step.step] = step.milliseconds / 1000
        documents = self._name([candidate.node.node_id for candidate in found.candidates])
        ranked = rank_documents(documents, question, top_k=self._retrieval.top_k)
        context = self._describe(packed, question) if self._retrieval.packed else None
        return Ranking(ranked, seconds, context)

    def _pack(self, found: Found, request: RetrievalRequest) -> Pack | None:
        return self._answerer.pack(
            found.candidates,
            request,
            multi_document=found.options.multidoc,
            budget=self._retrieval.settings.context_token_budget,
        )

    def _describe(self, packed: Pack | None, question: Question) -> PackedContext:
        if packed is None:
            return EMPTY
        node_ids = [node_id for block in packed.blocks for node_id in block.node_ids]
        return describe_pack(packed, question=question.text, documents=self._name(node_ids))

    def _name(self, node_ids: Sequence[int]) -> list[str]:
        place = self._collection
        with tenant_transaction(place.engine, [place.tenant_id]) as connection:
            return self._names.find(connection, node_ids)


def _find_changes(retrieval: Retrieval, served: Settings) -> Mapping[str, object]:
    """What the evaluation wants other than served: a call's changes stand before the tenant's."""
    wanted, usual = asdict(read_options(retrieval.settings)), asdict(read_options(served))
    changes = {name: value for name, value in wanted.items() if value != usual[name]}
    return changes if retrieval.multidoc else {**changes, "multidoc": False}
