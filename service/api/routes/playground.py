"""The playground: pages at / and /quality, their files, and what they must know to start."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from service.api.access import is_demo_visit
from service.api.models.playground import ShownStart
from service.errors import NotFound

router = APIRouter(include_in_schema=False)

EXAMPLES = (
    "How does row-level security keep tenants apart?",
    "How are links between documents used in ranking?",
    "What does the confidence gate do?",
    "When does the vector search use HNSW instead of an exact scan?",
    "Which table stores customer email addresses?",
)
# Everything comes from here, and no text can become markup: not even by a mistake in a script.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_FILES = {
    file.name: file.read_bytes()
    for file in (files("service.api") / "pages").iterdir()
    if PurePath(file.name).suffix in _MEDIA_TYPES
}


@router.get("/")
async def show_playground() -> Response:
    """Show the page."""
    return _send("index.html")


@router.get("/quality")
async def show_quality() -> Response:
    """Show the page of how good search is."""
    return _send("quality.html")


@router.get("/playground/start.json")
async def start_playground(request: Request) -> JSONResponse:
    """Say whether the page works without a key, and what could be asked then."""
    demo = is_demo_visit(request)
    start = ShownStart(demo=demo, examples=list(EXAMPLES) if demo else [])
    return JSONResponse(start.model_dump(), headers={"Cache-Control": "no-store"})


@router.get("/playground/{name}")
async def send_file(name: str) -> Response:
    """Send a file of the page."""
    return _send(name)


def _send(name: str) -> Response:
    if name not in _FILES:
        raise NotFound("The playground has no such file.")
    media_type = _MEDIA_TYPES[PurePath(name).suffix]
    return Response(_FILES[name], media_type=media_type, headers=_HEADERS)
