"""From a question to an answer: retrieve, pack, choose examples, let Claude write where it may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine

from service.db.context import list_neighbours
from service.db.engine import tenant_transaction
from service.db.tenant_settings import apply_tenant_settings, read_tenant_settings
from service.embedding import Embedder
from service.llm.calls import MessagesClient
from service.packing import Pack, make_rules, pack
from service.pipeline import Pipeline, Retrieval
from service.retrieval.request import RetrievalRequest
from service.settings import Settings
from service.synthesis.answer import Answer, Question, answer_question
from service.synthesis.claude import Writer
from service.synthesis.context import read_sources
from service.synthesis.egress import EgressRecorder, find_refusal
from service.synthesis.fewshot import Example, ExampleFiles, choose_examples, find_examples
from service.synthesis.stream import AnswerEvent, stream_answer
from service.types import Candidate, EgressConsent, Json


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that is ready to be answered; no pack where the gate fired."""

    request: RetrievalRequest
    question: Question
    retrieval: Retrieval
    pack: Pack | None

    def to_trace(self) -> dict[str, Any]:
        """Return what retrieval and packing did as plain values, as far as it was traced."""
        return {
            "retrieval": self.retrieval.trace and self.retrieval.trace.to_json(),
            "packing": self.pack and self.pack.trace.to_json(),
        }


class Answerer:
    """Answers questions; safe to share between threads.

    consent: whether the tenants' egress policies decide what is sent, or the key was brought by
    the caller for this very purpose.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        embedder: Embedder,
        claude: MessagesClient | None = None,
        consent: EgressConsent = "policy",
        pipeline: Pipeline | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._embedder = embedder
        self._claude = claude
        self._consent: EgressConsent = consent
        self._files = ExampleFiles(embedder)
        self._pipeline = pipeline or Pipeline(
            engine, settings, embedder=embedder, claude=claude, consent=consent
        )

    def prepare(
        self,
        request: RetrievalRequest,
        *,
        few_shot_path: Path | None = None,
        budget: int | None = None,
    ) -> Prepared:
        """Retrieve, pack and choose examples; nothing is written yet. budget: as for `pack`."""
        retrieval = self._pipeline.retrieve(request)
        packed = self.pack(
            retrieval.candidates,
            request,
            multi_document=retrieval.options.multidoc,
            budget=budget,
            tried=retrieval.tried_settings,
        )
        question = Question(
            text=request.text,
            sources=() if packed is None else read_sources(packed),
            query_type=retrieval.query_type,
            statement=retrieval.statement,
            examples=() if packed is None else self.find_examples(request, path=few_shot_path),
            usage=retrieval.usage,
            query_vector=self._embedder.embed_query(request.text),
        )
        return Prepared(request, question, retrieval, packed)

    def answer(self, ready: Prepared) -> Answer:
        """Return the answer; Claude's failure is part of it, not an error."""
        writer = self.open_writer(ready.request.tenant_ids)
        return answer_question(ready.question, writer=writer, embedder=self._embedder)

    def stream(self, ready: Prepared) -> Iterator[AnswerEvent]:
        """Yield the answer as events."""
        writer = self.open_writer(ready.request.tenant_ids)
        yield from stream_answer(ready.question, writer=writer, embedder=self._embedder)

    def pack(
        self,
        candidates: Sequence[Candidate],
        request: RetrievalRequest,
        *,
        multi_document: bool = False,
        budget: int | None = None,
        tried: Mapping[str, Json] | None = None,
    ) -> Pack | None:
        """Return candidates as a context within the budget; None where there are none.

        budget: tokens, instead of those of the settings. tried: settings of an experiment.
        """
        if not candidates:
            return None
        with tenant_transaction(self._engine, request.tenant_ids) as connection:
            settings = _find_settings(
                connection, request.tenant_ids, self._settings, tried=tried or {}
            )
            neighbours = list_neighbours(
                connection,
                request.tenant_ids,
                node_ids=[each.node.node_id for each in candidates],
                acl_groups=request.filters.acl_groups,
            )
        return pack(
            candidates,
            budget=settings.context_token_budget if budget is None else budget,
            question=request.text,
            rules=make_rules(settings),
            multi_document=multi_document,
            neighbours=neighbours,
        )

    def find_examples(
        self, request: RetrievalRequest, *, path: Path | None = None
    ) -> list[Example]:
        """Return the most similar examples of a file, or of the tenants where there is none."""
        vector = self._embedder.embed_query(request.text)
        if path is not None:
            return choose_examples(request.text, vector, among=self._files.load(path))
        with tenant_transaction(self._engine, request.tenant_ids) as connection:
            return find_examples(
                connection,
                request.tenant_ids,
                question=request.text,
                query_vector=vector,
                acl_groups=request.filters.acl_groups,
            )

    def open_writer(self, tenant_ids: Sequence[str]) -> Writer:
        """Return who writes for these tenants, or why nobody does."""
        asked = self._claude is not None and self._consent == "policy"
        return Writer(
            self._claude,
            model=self._settings.synthesis_model,
            max_tokens=self._settings.synthesis_max_tokens,
            record=EgressRecorder(self._engine, tuple(tenant_ids), "synthesis", self._consent),
            forbidden=(
                find_refusal(self._engine, tenant_ids, purpose="synthesis") if asked else None
            ),
        )


def _find_settings(
    connection: Connection,
    tenant_ids: Sequence[str],
    settings: Settings,
    *,
    tried: Mapping[str, Json],
) -> Settings:
    """Return the settings of the tenants, where all have the same; else the service's."""
    own = [read_tenant_settings(connection, tenant_id) for tenant_id in tenant_ids]
    shared = all(each == own[0] for each in own)
    return apply_tenant_settings(settings, {**own[0], **tried}) if shared else settings
