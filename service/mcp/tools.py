"""The five tools: each calls the endpoint of the same use, and shows less of its answer."""

from __future__ import annotations

from service.api.access import Access
from service.api.models.answer import GivenQuestion, ShownAnswer
from service.api.models.context import GivenContext
from service.api.models.search import GivenSearch, ShownHit, ShownNode, ShownSummary
from service.api.models.text_to_sql import GivenSchemaContext
from service.api.routes import answer as answers
from service.api.routes import nodes, text_to_sql
from service.api.routes import search as searches
from service.api.state import Services
from service.db.engine import tenant_transaction
from service.db.lookup import list_nodes
from service.errors import InvalidInput, NotFound
from service.mcp.shapes import (
    AnswerCitation,
    AskedAnswer,
    AskedContext,
    AskedFetch,
    AskedSchema,
    AskedSearch,
    ContextSource,
    DescribedSchema,
    FetchedNode,
    FoundNode,
    FoundNodes,
    GivenAnswer,
    PackedContext,
)
from service.retrieval.catalog import TABLE
from service.synthesis.hostile import clean_text
from service.types import SearchFilters

SNIPPET = 600
"""Characters of a text that a search result shows."""
PIECE = 24_000
"""Characters of a text that one fetch returns."""


def search(services: Services, access: Access, asked: AskedSearch) -> FoundNodes:
    """Return the nodes that fit a query, best first."""
    given = GivenSearch(**asked.model_dump())
    found = searches.search(given, access, services)
    return FoundNodes(results=[_show_hit(hit) for hit in found.hits], notice=_notice(found))


def fetch(services: Services, access: Access, asked: AskedFetch) -> FetchedNode:
    """Return a node's text, a long one in pieces."""
    node = nodes.read_stored_node(int(asked.id), access, services)
    text = _read_text(node)
    end = asked.offset + PIECE
    return FetchedNode(
        id=asked.id,
        title=clean_text(node.title),
        header=node.header and clean_text(node.header),
        url=node.url,
        dataset_name=node.dataset_name,
        node_type=node.node_type,
        parent_id=None if node.parent_id is None else str(node.parent_id),
        text=text[asked.offset : end],
        next_offset=end if end < len(text) else None,
    )


def get_context(services: Services, access: Access, asked: AskedContext) -> PackedContext:
    """Return what was found as one text within a token budget."""
    given = GivenContext(**asked.model_dump())
    packed = searches.build_context(given, access, services)
    sources = [
        ContextSource(
            number=block.number,
            ids=[str(item.node_id) for item in block.items],
            title=block.title,
            header=block.header,
            url=block.url,
        )
        for block in packed.blocks
    ]
    return PackedContext(
        text=packed.text,
        tokens=packed.tokens,
        budget=packed.budget,
        sources=sources,
        notice=_notice(packed),
    )


def answer(services: Services, access: Access, asked: AskedAnswer) -> GivenAnswer:
    """Return an answer; Claude writes it where the tenant's egress policy allows."""
    given = answers.answer(GivenQuestion(**asked.model_dump()), access, services)
    assert isinstance(given, ShownAnswer)  # it is asked for whole, not as events
    citations = [
        AnswerCitation(
            number=each.number,
            ids=[str(node_id) for node_id in each.node_ids],
            title=each.title,
            header=each.header,
            url=each.url,
            quotes=each.quotes,
        )
        for each in given.citations
    ]
    return GivenAnswer(
        answer=given.answer, mode=given.mode, notice=given.notice, citations=citations
    )


def describe_schema(services: Services, access: Access, asked: AskedSchema) -> DescribedSchema:
    """Return a database schema: whole where the budget holds it, else what fits the question."""
    dataset_name = asked.dataset_name or _find_schema(services, access)
    given = GivenSchemaContext(**{**asked.model_dump(), "dataset_name": dataset_name})
    context = text_to_sql.build_schema_context(given, access, services)
    return DescribedSchema(
        dataset_name=dataset_name,
        text=context.text,
        tokens=context.token_count,
        mode=context.mode,
        left_out=context.left_out,
    )


def _show_hit(hit: ShownHit) -> FoundNode:
    node, text = hit.node, _read_text(hit.node)
    return FoundNode(
        id=str(node.node_id),
        title=clean_text(node.title),
        header=node.header and clean_text(node.header),
        url=node.url,
        dataset_name=node.dataset_name,
        node_type=node.node_type,
        relevance=hit.relevance,
        band=hit.band,
        text=text[:SNIPPET],
        truncated=len(text) > SNIPPET,
    )


def _read_text(node: ShownNode) -> str:
    """Return a node's text without characters that nobody sees: a model would read them."""
    return clean_text("\n".join(part for part in (node.summary, node.content) if part))


def _notice(found: ShownSummary) -> str | None:
    """Say where a result is less than it seems."""
    said = [
        f"Only {found.mode} were searched: {found.mode_reason}" if found.mode_reason else "",
        "Nothing that was found is near in meaning to the query." if found.gated else "",
    ]
    return " ".join(each for each in said if each) or None


def _find_schema(services: Services, access: Access) -> str:
    """Return the one dataset that has tables; ask which where there are several."""
    with tenant_transaction(services.database.engine, [access.tenant_id]) as connection:
        tables = list_nodes(
            connection,
            access.tenant_id,
            node_types=[TABLE],
            filters=SearchFilters(acl_groups=access.acl_groups),
        )
    names = sorted({table.dataset_name for table in tables})
    if not names:
        raise NotFound("There is no schema.", hint="Store one: contextforge ingest-schema")
    if len(names) > 1:
        raise InvalidInput(
            "There are several schemas.", hint=f"Name one in dataset_name: {', '.join(names)}."
        )
    return names[0]
