"""The demo knowledge that ships with the project, and loading it as a tenant of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import metadata
from io import BytesIO

from sqlalchemy import Engine

from service.db.resources import ROOT
from service.demo import demo_files
from service.embedding import Embedder
from service.ingestion.convert import (
    NodeGroup,
    group_document,
    group_examples,
    group_schema,
)
from service.ingestion.examples import Example, read_examples
from service.ingestion.ingest import Ingestion, IngestReport, OnProgress, Rejection
from service.ingestion.read import Source, find_files, read_document
from service.ingestion.schema_file import read_schema_file
from service.ingestion.schema_model import Schema

DEMO_TENANT = "demo"
DOCUMENTATION = "docs"
SALES = "sales_db"


@dataclass(frozen=True, slots=True)
class DemoKnowledge:
    """What is loaded: the project's documentation, and a sales company's schema with examples."""

    documents: tuple[Source, ...]
    schema: Schema
    examples: tuple[Example, ...]

    @property
    def size(self) -> int:
        """How many documents, tables and examples there are."""
        return len(self.documents) + len(self.schema.tables) + len(self.examples)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What became of each dataset of the demo."""

    docs: IngestReport
    sales_db: IngestReport

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """What was left out of either."""
        return self.docs.rejected + self.sales_db.rejected


def read_demo() -> DemoKnowledge:
    """Find the demo's sources: in an installed package, or beside a checkout."""
    files = demo_files()
    examples = read_examples(files.examples, format="jsonl")
    return DemoKnowledge(
        documents=(_find_readme(), *find_files([str(ROOT / "docs")], root=ROOT)),
        schema=read_schema_file(files.schema),
        examples=tuple(row for row in examples if isinstance(row, Example)),
    )


def load_demo(
    knowledge: DemoKnowledge,
    engine: Engine,
    *,
    embedder: Embedder,
    on_progress: OnProgress | None = None,
) -> DemoReport:
    """Bring the demo tenant, which must exist, to this knowledge; only what is new is embedded."""
    documentation = Ingestion(engine, DEMO_TENANT, embedder, dataset_name=DOCUMENTATION)
    sales = Ingestion(engine, DEMO_TENANT, embedder, dataset_name=SALES)
    return DemoReport(
        docs=documentation.run(
            (group_document(read_document(source)) for source in knowledge.documents),
            prune=True,
            on_progress=on_progress,
        ),
        sales_db=sales.run(_sales_groups(knowledge), prune=True, on_progress=on_progress),
    )


def _sales_groups(knowledge: DemoKnowledge) -> Iterator[NodeGroup]:
    yield from group_schema(knowledge.schema)
    yield from group_examples("sales_examples.jsonl", knowledge.examples)


def _find_readme() -> Source:
    path = ROOT / "README.md"
    if path.is_file():
        return Source("README.md", "markdown", path=path)
    # A wheel carries it as the description of the package.
    text = metadata("contextforge")["Description"]
    return Source("README.md", "markdown", stream=BytesIO(text.encode()))
