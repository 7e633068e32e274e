"""What eval, compare and tune share: options, and a set that is loaded and ready to be asked."""

from __future__ import annotations

from collections.abc import Collection as AnyOf
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.ingesting import show_progress
from service.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from service.embedding import Embedder
    from service.evaluation.evaluate import EmbeddedQuestions, Evaluation
    from service.evaluation.options import Retrieval
    from service.evaluation.scratch import SourceSet
    from service.evaluation.searchers import Collection, Searcher
    from service.ingestion.ingest import Rejection
    from service.settings import Settings

SetPath = Annotated[Path, typer.Argument(metavar="PATH", help="A BEIR or text-to-SQL folder.")]
SplitOption = Annotated[str, typer.Option("--split", help="Which judgements: test, train, dev.")]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="Search this tenant instead of a scratch one.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="Search only this dataset of the tenant.")
]
EmbeddingsOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--embeddings",
        metavar="CORPUS.npy QUERIES.npy",
        help="Vectors of corpus and questions, in the order of the files.",
    ),
]
KeepOption = Annotated[bool, typer.Option("--keep", help="Keep the scratch tenant for next time.")]
LangOption = Annotated[str, typer.Option("--lang", help="Language of the corpus, such as en.")]
FewShotOption = Annotated[
    Path | None,
    typer.Option("--few-shot", help="Examples in use (JSON, JSON Lines): must hold no question."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same figures.")]


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Which set, and where it is searched; guarded: no question may be a few-shot example."""

    path: Path
    split: str
    tenant: str | None = None
    dataset: str | None = None
    embeddings: tuple[Path, Path] | None = None
    keep: bool = False
    lang: str = "en"
    few_shot: Path | None = None
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class OpenSet:
    """A set whose documents can be searched; settings are the tenant's where it has some."""

    source: SourceSet
    collection: Collection
    embedder: Embedder
    settings: Settings
    documents: int
    rejected: tuple[Rejection, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The questions by id."""
        return {question.query_id: question.text for question in self.source.judged.questions}


@contextmanager
def open_set(options: SetOptions) -> Iterator[OpenSet]:
    """Read a set and make its documents searchable, in a scratch tenant or the one named."""
    from service.db.database import open_database
    from service.evaluation.scratch import read_source
    from service.settings import load_settings

    if options.tenant is not None and options.embeddings is not None:
        raise InvalidInput("--embeddings is for a scratch tenant; the tenant has its own vectors.")
    if options.tenant is None and options.dataset is not None:
        raise InvalidInput("--dataset is for a tenant that is named by --tenant.")
    settings = load_settings()
    source = read_source(options.path, split=options.split)
    _guard_file(options, source)
    embedder = _find_embedder(options, source, settings=settings)
    with open_database(settings) as database:
        opening = _Opening(options, source, embedder, settings, database.engine)
        if options.tenant is not None:
            yield opening.open_tenant(options.tenant)
            return
        with opening.open_scratch() as opened:
            yield opened


@dataclass(frozen=True, slots=True)
class _Opening:
    """What it takes to open a set, in either kind of tenant."""

    options: SetOptions
    source: SourceSet
    embedder: Embedder
    settings: Settings
    engine: Engine

    def open_tenant(self, tenant_id: str) -> OpenSet:
        """A tenant that is there, with its own settings; its examples must hold no question."""
        from service.db.engine import tenant_transaction
        from service.db.evaluation import count_nodes, list_example_questions, read_embedder_version
        from service.db.tenant_settings import apply_tenant_settings, read_tenant_settings
        from service.synthesis.leaks import refuse_leaks

        with tenant_transaction(self.engine, [tenant_id]) as connection:
            stored = read_tenant_settings(connection, tenant_id)
            version = read_embedder_version(connection, tenant_id)
            examples = list_example_questions(connection, tenant_id)
            documents = count_nodes(connection, tenant_id)
        refuse_other_embedder(tenant_id, version, embedder=self.embedder)
        if self.options.guarded:
            texts = [question.text for question in self.source.judged.questions]
            refuse_leaks(texts, examples, source=f"tenant {tenant_id}")
        settings = apply_tenant_settings(self.settings, stored)
        return self._describe(tenant_id, settings=settings, documents=documents)

    @contextmanager
    def open_scratch(self) -> Iterator[OpenSet]:
        """A tenant of the set's own; who made it removes it, unless it is to be kept."""
        from service.evaluation.scratch import load_scratch, name_scratch

        scratch = name_scratch(self.source, self.embedder, lang=self.options.lang)
        is_new = _create_tenant(self.settings, scratch.tenant_id, lang=self.options.lang)
        try:
            with show_progress("load", total=self.source.documents) as on_progress:
                rejected = load_scratch(self.engine, scratch, on_progress=on_progress)
            for each in rejected:
                typer.echo(f"rejected {each.source}: {each.reason}", err=True)
            documents = self.source.documents - len(rejected)
            yield self._describe(
                scratch.tenant_id, settings=self.settings, documents=documents, rejected=rejected
            )
        finally:
            if is_new and not self.options.keep:
                _delete_tenant(self.settings, scratch.tenant_id)

    def _describe(
        self,
        tenant_id: str,
        *,
        settings: Settings,
        documents: int,
        rejected: tuple[Rejection, ...] = (),
    ) -> OpenSet:
        from service.evaluation.searchers import Collection

        collection = Collection(
            self.engine,
            tenant_id,
            dataset_name=self.options.dataset,
            node_types=("field",) if self.source.schemas else None,
        )
        return OpenSet(self.source, collection, self.embedder, settings, documents, rejected)


def refuse_other_embedder(tenant_id: str, version: str | None, *, embedder: Embedder) -> None:
    """Raise if a tenant's vectors are of another model than the one that embeds questions."""
    if version is not None and version != embedder.version:
        raise Conflict(
            f'Tenant "{tenant_id}" holds embeddings of {version}, not of {embedder.version}.',
            hint="Set EMBEDDING_MODEL to the model it was ingested with.",
        )


def embed_set(opened: OpenSet, modes: AnyOf[str]) -> EmbeddedQuestions:
    """The questions with their vectors: given, computed, or none where no mode needs them."""
    import numpy as np

    from service.evaluation.evaluate import EmbeddedQuestions, embed_questions
    from service.evaluation.vectors import GivenVectors

    questions = opened.source.judged.questions
    if set(modes) == {"bm25"}:
        return EmbeddedQuestions(questions, np.zeros((len(questions), 0), dtype=np.float32))
    if isinstance(opened.embedder, GivenVectors):
        rows = [question.row for question in questions]
        return EmbeddedQuestions(questions, opened.embedder.questions[rows])
    with show_progress("embed", total=len(questions)) as on_progress:
        return embed_questions(questions, opened.embedder, on_progress=on_progress)


def evaluate_set(opened: OpenSet, retrievals: Sequence[Retrieval]) -> list[Evaluation]:
    """Ask all questions in every way of retrieval, behind a progress bar."""
    from service.evaluation.evaluate import evaluate

    searchers = [(each, _make_searcher(opened, each)) for each in retrievals]
    embedded = embed_set(opened, {each.mode for each in retrievals})
    with show_progress("search", total=len(embedded.questions)) as on_progress:
        return evaluate(
            opened.source.judged, embedded, searchers=searchers, on_progress=on_progress
        )


def _make_searcher(opened: OpenSet, retrieval: Retrieval) -> Searcher:
    from service.evaluation.pipeline_searcher import PipelineSearcher
    from service.evaluation.searchers import DocumentNames, NodeSearcher

    if retrieval.mode == "pipeline":
        return PipelineSearcher(
            opened.collection, retrieval, embedder=opened.embedder, served=opened.settings
        )
    names = DocumentNames(opened.collection.tenant_id)
    return NodeSearcher(opened.collection, retrieval, names)


def read_retrieval(
    base: Retrieval, texts: Sequence[str], *, fusion: str | None = None
) -> Retrieval:
    """The base with other settings; those without an effect in its mode are named on stderr."""
    from service.evaluation.options import change_retrieval, list_idle, parse_assignments

    given = parse_assignments([*([f"fusion={fusion}"] if fusion else []), *texts])
    changed = change_retrieval(base, given)
    for name in list_idle(changed, given):
        typer.echo(f"note: {name} has no effect in mode {changed.mode}.", err=True)
    return changed


def _find_embedder(options: SetOptions, source: SourceSet, *, settings: Settings) -> Embedder:
    from service.embedding import load_embedder
    from service.evaluation.vectors import read_vectors

    if options.embeddings is None:
        return load_embedder(settings.embedding_model)
    if source.schemas:
        raise InvalidInput("--embeddings needs a BEIR folder: schemas have no lines to count.")
    documents, questions = options.embeddings
    return read_vectors(
        documents,
        questions,
        document_rows=source.documents,
        question_rows=source.judged.rows,
        most=settings.embedding_dim,
    )


def _guard_file(options: SetOptions, source: SourceSet) -> None:
    from service.evaluation.question_files import read_questions
    from service.synthesis.leaks import refuse_leaks

    if options.few_shot is not None:
        texts = [question.text for question in source.judged.questions]
        refuse_leaks(texts, read_questions(options.few_shot), source=str(options.few_shot))


def _create_tenant(settings: Settings, tenant_id: str, *, lang: str) -> bool:
    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.db.registry import create_tenant

    with open_admin(settings) as admin, owner_transaction(admin.engine) as connection:
        return create_tenant(connection, tenant_id, display_name="Evaluation", lang=lang)


def _delete_tenant(settings: Settings, tenant_id: str) -> None:
    from service.db.database import open_admin
    from service.db.engine import owner_transaction
    from service.db.registry import delete_tenant

    with open_admin(settings) as admin, owner_transaction(admin.engine) as connection:
        delete_tenant(connection, tenant_id)
