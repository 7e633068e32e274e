"""KnowledgeVerseAdapter: what text-to-SQL asks of a tenant's nodes, as typed specs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from sqlalchemy import Engine

from service.db.borrowed import AnySession, borrow_transactions
from service.db.database import open_database
from service.db.engine import tenant_transaction
from service.db.lookup import list_nodes, search_similar
from service.embedding import Embedder, load_embedder
from service.errors import InvalidInput, NotFound
from service.packing.rules import make_rules
from service.retrieval.catalog import (
    EXAMPLE,
    FIELD,
    TABLE,
    Catalog,
    read_catalog,
    read_example,
    read_field,
)
from service.retrieval.other_names import OtherNames, known_by_other_names
from service.retrieval.schema_context import (
    RENDERERS,
    Measure,
    fit_best_fields,
    fit_whole_schema,
)
from service.retrieval.spec_search import (
    Embedding,
    OpenTransaction,
    SpecSearch,
    search_specs,
    to_vector,
)
from service.settings import Settings, load_settings, override_settings
from service.specs import ContextFormat, ExampleSpec, FieldSpec, MasterConfig, SchemaContext
from service.tokens import load_counter
from service.types import Candidate, Json, Node, SearchFilters

MOST_NODES = 10_000
FIELDS_RANKED = 100
"""How many fields a schema context chooses from."""

P = ParamSpec("P")
T = TypeVar("T")


class KnowledgeVerseAdapter:
    """Fields, examples and schemas of tenants for text-to-SQL; close it, or use it in `with`.

    Safe to share between threads; on a session, calls wait for each other. `aio` has the same
    methods for async callers.
    """

    def __init__(
        self,
        database: str | Engine | AnySession | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        groups: Sequence[str] = (),
    ) -> None:
        """Use the database of the settings, of a URL, or of an engine or session that exists.

        An engine or session stays its owner's: nothing is committed on a session, and neither is
        closed. groups: the caller's; nodes with an acl come back only to one of theirs.
        """
        self._settings = settings or load_settings()
        self._given_embedder = embedder
        self._groups = tuple(groups)
        self._open = ExitStack()
        self._transaction = self._choose_transactions(database)
        self.aio = AsyncKnowledgeVerseAdapter(self)

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
        """Give back the database the adapter opened; what it was handed stays open."""
        self._open.close()

    # --- nodes ---------------------------------------------------------------------------------

    @known_by_other_names
    def get_nodes(
        self,
        *,
        tenant_id: str,
        dataset_name: str | None = None,
        node_type: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 1000,
        after: int = 0,
        **_: Unpack[OtherNames],
    ) -> list[Node]:
        """Return a page of nodes by node_id; the next one is `after` the last node_id of this.

        A page shorter than the limit is the last.
        """
        if not 1 <= limit <= MOST_NODES:
            raise InvalidInput(f"limit is {limit}.", hint=f"Use 1 to {MOST_NODES}.")
        with self._transaction([tenant_id]) as connection:
            return list_nodes(
                connection,
                tenant_id,
                dataset_name=dataset_name,
                node_types=None if node_type is None else [node_type],
                filters=SearchFilters(acl_groups=self._groups, metadata=metadata or {}),
                after=after,
                limit=limit,
            )

    @known_by_other_names
    def get_similar_nodes(
        self,
        query_embedding: Embedding,
        *,
        tenant_id: str,
        dataset_name: str | None = None,
        node_types: Sequence[str] | None = None,
        top_k: int = 10,
        similarity_threshold: float | None = None,
        metadata: Mapping[str, Json] | None = None,
        **_: Unpack[OtherNames],
    ) -> list[Candidate]:
        """Return nodes by cosine alone, best first, at least as similar as the threshold."""
        with self._transaction([tenant_id]) as connection:
            return search_similar(
                connection,
                [tenant_id],
                query_embedding=to_vector(query_embedding),
                node_types=node_types,
                top_k=top_k,
                similarity_threshold=similarity_threshold,
                dataset_name=dataset_name,
                filters=SearchFilters(acl_groups=self._groups, metadata=metadata or {}),
            )

    @known_by_other_names
    def hybrid_search(
        self,
        query_text: str = "",
        *,
        tenant_ids: Sequence[str],
        query_embedding: Embedding | None = None,
        node_types: Sequence[str] | None = None,
        dataset_name: str | None = None,
        top_k: int = 20,
        bm25_weight: float | None = None,
        vector_weight: float | None = None,
        min_relevance: float | None = None,
        metadata: Mapping[str, Json] | None = None,
        **_: Unpack[OtherNames],
    ) -> list[Candidate]:
        """Return nodes by keywords and meaning, best first by combined_score.

        A text without an embedding is embedded here; weights not given are the tenant's.
        """
        if not query_text.strip() and query_embedding is None:
            raise InvalidInput("query_text is empty and there is no query_embedding.")
        if isinstance(tenant_ids, str) or isinstance(node_types, str):
            raise InvalidInput("tenant_ids and node_types are lists.", hint='Give ["acme_corp"].')
        return self._search(
            SpecSearch(
                query_text,
                tuple(tenant_ids),
                None if node_types is None else tuple(node_types),
                top_k,
                dataset_name,
                metadata or {},
                self._groups,
                min_relevance,
                query_embedding,
                bm25_weight,
                vector_weight,
            )
        )

    # --- specs ---------------------------------------------------------------------------------

    @known_by_other_names
    def get_similar_fields(
        self,
        query: str = "",
        *,
        tenant_id: str,
        dataset_name: str | None = None,
        top_k: int = 10,
        min_relevance: float | None = None,
        **_: Unpack[OtherNames],
    ) -> list[FieldSpec]:
        """Return the fields that fit a question, best first."""
        found = self._search(
            SpecSearch(
                _require_text(query),
                (tenant_id,),
                (FIELD,),
                top_k,
                dataset_name,
                acl_groups=self._groups,
                min_relevance=min_relevance,
            )
        )
        return [read_field(each.node, score=each.combined_score) for each in found]

    @known_by_other_names
    def get_similar_qa_examples(
        self,
        query: str = "",
        *,
        tenant_id: str,
        dataset_name: str | None = None,
        top_k: int = 5,
        verified: bool | None = None,
        min_relevance: float | None = None,
        **_: Unpack[OtherNames],
    ) -> list[ExampleSpec]:
        """Return examples like a question, best first; never one that is quarantined.

        verified: True for those somebody has looked at, False for the others.
        """
        found = self._search(
            SpecSearch(
                _require_text(query),
                (tenant_id,),
                (EXAMPLE,),
                top_k,
                dataset_name,
                {} if verified is None else {"verified": verified},
                self._groups,
                min_relevance,
            )
        )
        return [read_example(each.node, score=each.combined_score) for each in found]

    @known_by_other_names
    def get_schema_context(
        self,
        query: str = "",
        *,
        tenant_id: str,
        dataset_name: str | None = None,
        token_budget: int | None = None,
        format: ContextFormat = "ddl",  # noqa: A002 - the word of the contract
        **_: Unpack[OtherNames],
    ) -> SchemaContext:
        """Return the schema as text: whole if the budget holds it, else the best fields, joined.

        The budget counts tokens of TOKENIZER_MODEL; without one it is CONTEXT_TOKEN_BUDGET.
        """
        question, dataset = _require_text(query), _require_dataset(dataset_name)
        if format not in RENDERERS:
            raise InvalidInput(f'There is no format "{format}".', hint="Use ddl or json.")
        measure = Measure(
            RENDERERS[format],
            load_counter(make_rules(self._settings).vocabulary),
            self._settings.context_token_budget if token_budget is None else token_budget,
        )
        catalog = self._read_catalog(tenant_id, dataset)
        whole = fit_whole_schema(catalog, measure)
        if whole is not None:
            return whole
        fields = self.get_similar_fields(
            question, tenant_id=tenant_id, dataset_name=dataset, top_k=FIELDS_RANKED
        )
        return fit_best_fields(catalog, fields, measure=measure)

    @known_by_other_names
    def get_master_config(
        self, *, tenant_id: str, dataset_name: str | None = None, **_: Unpack[OtherNames]
    ) -> MasterConfig:
        """Return every table of a dataset with its fields, row count and joins."""
        dataset = _require_dataset(dataset_name)
        catalog = self._read_catalog(tenant_id, dataset)
        return MasterConfig(dataset, tuple(catalog.tables.values()), catalog.joins)

    # --- inside --------------------------------------------------------------------------------

    @cached_property
    def _embedder(self) -> Embedder:
        return self._given_embedder or load_embedder(self._settings.embedding_model)

    def _search(self, asked: SpecSearch) -> list[Candidate]:
        return search_specs(
            asked,
            self._transaction,
            settings=self._settings,
            embedder=self._embedder if asked.is_embedded_here else None,
        )

    def _read_catalog(self, tenant_id: str, dataset_name: str) -> Catalog:
        with self._transaction([tenant_id]) as connection:
            nodes = list_nodes(
                connection,
                tenant_id,
                dataset_name=dataset_name,
                node_types=[TABLE, FIELD],
                filters=SearchFilters(acl_groups=self._groups),
            )
        if not nodes:
            raise NotFound(
                f'Tenant "{tenant_id}" has no schema in dataset "{dataset_name}".',
                hint="Store one: contextforge ingest-schema",
            )
        return read_catalog(nodes)

    def _choose_transactions(self, database: str | Engine | AnySession | None) -> OpenTransaction:
        if database is not None and not isinstance(database, str):
            return borrow_transactions(database)
        if database is not None:
            given = {"database_url": database}
            self._settings = override_settings(self._settings, given, place="database")
        opened = self._open.enter_context(open_database(self._settings))
        return partial(tenant_transaction, opened.engine)


def _awaited(
    method: Callable[Concatenate[KnowledgeVerseAdapter, P], T],
) -> Callable[Concatenate[AsyncKnowledgeVerseAdapter, P], Coroutine[Any, Any, T]]:
    """The method for async callers: it runs in a thread, so the event loop goes on."""

    @wraps(method)
    async def call(self: AsyncKnowledgeVerseAdapter, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self.adapter, *args, **kwargs)

    return call


@dataclass(frozen=True, slots=True)
class AsyncKnowledgeVerseAdapter:
    """The methods of a KnowledgeVerseAdapter, to be awaited."""

    adapter: KnowledgeVerseAdapter

    get_nodes = _awaited(KnowledgeVerseAdapter.get_nodes)
    get_similar_nodes = _awaited(KnowledgeVerseAdapter.get_similar_nodes)
    hybrid_search = _awaited(KnowledgeVerseAdapter.hybrid_search)
    get_similar_fields = _awaited(KnowledgeVerseAdapter.get_similar_fields)
    get_similar_qa_examples = _awaited(KnowledgeVerseAdapter.get_similar_qa_examples)
    get_schema_context = _awaited(KnowledgeVerseAdapter.get_schema_context)
    get_master_config = _awaited(KnowledgeVerseAdapter.get_master_config)


def _require_text(query: str) -> str:
    if not query.strip():
        raise InvalidInput("query is empty.", hint="It may also be given as question.")
    return query


def _require_dataset(dataset_name: str | None) -> str:
    if not dataset_name:
        raise InvalidInput(
            "dataset_name is missing.", hint="It may also be given as document_name."
        )
    return dataset_name
