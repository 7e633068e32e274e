"""Fields, examples and schemas for text-to-SQL."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from service.adapter import KnowledgeVerseAdapter
from service.api.access import Access, FromAccess, SearchRoute, describe_headers
from service.api.models.text_to_sql import (
    GivenExamples,
    GivenFields,
    GivenSchemaContext,
    ShownExample,
    ShownExamples,
    ShownField,
    ShownFields,
    ShownSchemaContext,
)
from service.api.state import FromServices, Services

router = APIRouter(
    prefix="/v1",
    tags=["text-to-SQL"],
    route_class=SearchRoute,
    dependencies=[Depends(describe_headers)],
)


@router.post("/fields")
def find_fields(given: GivenFields, access: FromAccess, services: FromServices) -> ShownFields:
    """Find the database columns that fit a question."""
    found = _open_adapter(services, access).get_similar_fields(
        given.query,
        tenant_id=access.tenant_id,
        dataset_name=given.dataset_name,
        top_k=given.max_results,
        min_relevance=given.min_relevance,
    )
    return ShownFields(fields=[ShownField.model_validate(each) for each in found])


@router.post("/examples")
def find_examples(
    given: GivenExamples, access: FromAccess, services: FromServices
) -> ShownExamples:
    """Find questions like this one, with the SQL that answers them."""
    found = _open_adapter(services, access).get_similar_qa_examples(
        given.query,
        tenant_id=access.tenant_id,
        dataset_name=given.dataset_name,
        top_k=given.max_results,
        verified=given.verified,
        min_relevance=given.min_relevance,
    )
    return ShownExamples(examples=[ShownExample.model_validate(each) for each in found])


@router.post("/schema-context")
def build_schema_context(
    given: GivenSchemaContext, access: FromAccess, services: FromServices
) -> ShownSchemaContext:
    """Write a schema for a prompt: whole if the budget holds it, else its best fields, joined."""
    built = _open_adapter(services, access).get_schema_context(
        given.query,
        tenant_id=access.tenant_id,
        dataset_name=given.dataset_name,
        token_budget=given.token_budget,
        format=given.format,
    )
    return ShownSchemaContext.model_validate(built)


def _open_adapter(services: Services, access: Access) -> KnowledgeVerseAdapter:
    """An adapter for one call: it only borrows the engine, so there is nothing to close."""
    return KnowledgeVerseAdapter(
        services.database.engine,
        settings=services.settings,
        embedder=services.embedder,
        groups=access.acl_groups,
    )
