"""Documents: stored at once where they are small, else by a worker."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from service.api.access import Access, FromAccess, IngestRoute, SearchRoute, describe_headers
from service.api.models.common import DatasetName
from service.api.models.documents import GivenDocuments, ShownIngest, ShownJob
from service.api.state import FromServices, Services
from service.errors import InvalidInput
from service.ingestion.gather import gather_groups, open_document
from service.ingestion.ingest import Ingestion, IngestReport
from service.ingestion.jobs import IngestOptions, enqueue_documents, get_job
from service.types import InlineDocument

writing = APIRouter(
    prefix="/v1", tags=["nodes"], route_class=IngestRoute, dependencies=[Depends(describe_headers)]
)
reading = APIRouter(
    prefix="/v1", tags=["nodes"], route_class=SearchRoute, dependencies=[Depends(describe_headers)]
)
# What takes a second or two to split and embed; more goes to a worker.
SMALL_BYTES = 256 * 1024
MOST_FILES = 1000
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/GivenDocuments"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "array",
                            "minItems": 1,
                            "items": {"type": "string", "format": "binary"},
                            "description": "Files; a file's name is its identity.",
                        }
                    },
                }
            },
        },
    }
}


@writing.post(
    "/documents",
    response_model=ShownIngest,
    responses={202: {"model": ShownJob, "description": "Queued; see Location."}},
    openapi_extra=_BODY,
)
async def store_documents(
    *,
    request: Request,
    access: FromAccess,
    services: FromServices,
    dataset_name: Annotated[DatasetName, Query()] = "default",
    wait: Annotated[
        bool, Query(description="False queues small documents too; large ones always are.")
    ] = True,
) -> ShownIngest | Response:
    """Store documents: Markdown, HTML, PDF, text, reStructuredText or JSON Lines."""
    documents = await _read_documents(request)
    options = IngestOptions(dataset_name=dataset_name)
    size = sum(len(document.content) for document in documents)
    if wait and size <= SMALL_BYTES:
        report = await run_in_threadpool(_ingest, services, access, documents, options)
        return ShownIngest.model_validate(report)
    job = await run_in_threadpool(
        enqueue_documents,
        services.database.engine,
        access.tenant_id,
        documents=documents,
        options=options,
    )
    shown = ShownJob.model_validate(job)
    return Response(
        shown.model_dump_json(),
        status_code=202,
        media_type="application/json",
        headers={"Location": f"/v1/jobs/{shown.job_id}"},
    )


@reading.get("/jobs/{job_id}")
def read_job(job_id: str, access: FromAccess, services: FromServices) -> ShownJob:
    """Say how far a job is, and what came of it."""
    job = get_job(services.database.engine, [access.tenant_id], job_id=job_id)
    return ShownJob.model_validate(job)


def _ingest(
    services: Services,
    access: Access,
    documents: list[InlineDocument],
    options: IngestOptions,
) -> IngestReport:
    ingestion = Ingestion(
        services.database.engine,
        access.tenant_id,
        services.embedder,
        dataset_name=options.dataset_name,
    )
    sources = [open_document(document) for document in documents]
    report = ingestion.run(gather_groups(sources, size=options.size, overlap=options.overlap))
    if report.rejected and not report.nodes:
        first = report.rejected[0]
        raise InvalidInput(
            f'"{first.source}" was not stored: {first.reason}', hint="Nothing was stored."
        )
    return report


async def _read_documents(request: Request) -> list[InlineDocument]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        documents = _parse(await request.body())
    elif kind == "multipart/form-data":
        documents = await _read_files(request)
    else:
        raise HTTPException(415, "Documents come as application/json or multipart/form-data.")
    names = [document.name for document in documents]
    if len(set(names)) < len(names):
        raise InvalidInput("Two documents have the same name.")
    return documents


def _parse(body: bytes) -> list[InlineDocument]:
    try:
        given = GivenDocuments.model_validate_json(body)
    except ValidationError as exc:
        flaws = [{**each, "loc": ("body", *each["loc"])} for each in exc.errors()]
        raise RequestValidationError(flaws) from exc
    return [InlineDocument(each.name, each.content.encode()) for each in given.documents]


async def _read_files(request: Request) -> list[InlineDocument]:
    async with request.form(max_files=MOST_FILES) as form:
        files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        documents = [InlineDocument(file.filename or "", await file.read()) for file in files]
    if not documents:
        raise InvalidInput("There are no files in the form.")
    if any(not each.name.strip() or "\x00" in each.name for each in documents):
        raise InvalidInput("A file has no name, or a NUL byte in it.")
    return documents
