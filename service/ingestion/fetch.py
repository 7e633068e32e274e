"""Pages from the web: every hop is checked, sizes and time are bounded, nothing else is obeyed."""

from __future__ import annotations

import codecs
import re
import ssl
from collections.abc import Collection
from dataclasses import dataclass, replace
from email.message import Message
from io import BytesIO
from pathlib import PurePosixPath

import httpcore
import httpx

from service.errors import FetchFailed, UrlRefused
from service.ingestion.links import resolve_link
from service.ingestion.network import Deadline, GuardedBackend, Resolve, resolve_host
from service.ingestion.read import FORMATS, MAX_BYTES, Format, Source

MAX_REDIRECTS = 5
MAX_SECONDS = 30.0
_PORTS = {"http": 80, "https": 443}
_LOGIN = re.compile(r"(//)[^/?#]*@")
_MOVED = frozenset({301, 302, 303, 307, 308})
_FORMAT_OF_TYPE: dict[str, Format] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/x-rst": "restructured",
    "text/prs.fallenstein.rst": "restructured",
    "application/jsonl": "jsonl",
    "application/x-jsonlines": "jsonl",
    "application/x-ndjson": "jsonl",
    "text/plain": "text",
}


@dataclass(frozen=True, slots=True)
class Page:
    """What a web server gave: from where at last, its bytes, and what it says they are."""

    url: str
    content: bytes
    media_type: str
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches pages of the public internet; `trusted` addresses are for tests alone."""

    ports: Collection[int] = (80, 443)
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    resolve: Resolve = resolve_host
    trusted: Collection[str] = ()
    ssl_context: ssl.SSLContext | None = None

    def fetch(self, url: str) -> Page:
        """The page at a URL; UrlRefused if it may not be fetched, FetchFailed if it is not had."""
        deadline = Deadline.after(self.max_seconds)
        next_hop = self._check_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = self._ask(next_hop, deadline)
            except (httpcore.NetworkError, httpcore.ProtocolError) as exc:
                raise FetchFailed(f"{next_hop} cannot be read: {exc}.") from exc
            except httpx.InvalidURL as exc:
                raise UrlRefused(f"{next_hop} redirects to what is no URL: {exc}.") from exc
            except httpcore.TimeoutException as exc:
                raise FetchFailed(
                    f"{next_hop} did not answer in time.", hint="Try again later."
                ) from exc
            if isinstance(answer, Page):
                return answer
            next_hop = self._check_url(answer)
        raise FetchFailed(f"{url} redirects more than {MAX_REDIRECTS} times.")

    def _check_url(self, url: str) -> httpx.URL:
        """The URL in its parts, which alone are used from here on."""
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as exc:
            raise UrlRefused(f"{url} is no URL: {exc}.") from exc
        if parsed.scheme not in _PORTS or not parsed.host:
            raise UrlRefused(f"{url} is no web page.", hint="Only http and https are fetched.")
        if parsed.userinfo:
            raise UrlRefused(f"A URL at {parsed.host} holds a user name or a password.")
        port = parsed.port or _PORTS[parsed.scheme]
        if port not in self.ports:
            raise UrlRefused(
                f"{url} is at port {port}.",
                hint="CONTEXTFORGE_URL_PORTS says which ports are allowed.",
            )
        return parsed

    def _ask(self, url: httpx.URL, deadline: Deadline) -> Page | str:
        """The page at a URL, or the URL it has moved to."""
        backend = GuardedBackend(deadline, self.resolve, self.trusted)
        secure = url.scheme == "https"
        context = (
            (self.ssl_context or httpx.create_ssl_context(trust_env=False)) if secure else None
        )
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", b"contextforge"),
            (b"Accept", ", ".join(_FORMAT_OF_TYPE).encode()),
            # Compressed, a small answer could become a very large one.
            (b"Accept-Encoding", b"identity"),
            (b"Connection", b"close"),
        ]
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        with (
            httpcore.ConnectionPool(ssl_context=context, network_backend=backend) as pool,
            pool.stream("GET", target, headers=headers) as response,
        ):
            told = Message()
            for name, value in response.headers:
                told[name.decode("latin-1")] = value.decode("latin-1")
            if response.status in _MOVED and told["Location"]:
                return str(url.join(told["Location"]))
            return self._read_page(url, response, told=told)

    def _read_page(self, url: httpx.URL, response: httpcore.Response, *, told: Message) -> Page:
        if response.status != httpx.codes.OK:
            raise FetchFailed(f"{url} answered with status {response.status}.")
        media_type = told.get_content_type() if "Content-Type" in told else "none"
        if media_type not in _FORMAT_OF_TYPE:
            raise UrlRefused(
                f"{url} is of the content type {media_type}, which is not read.",
                hint="HTML, PDF, Markdown, reStructuredText, plain text and JSON Lines are.",
            )
        if told.get("Content-Encoding", "identity").lower() != "identity":
            raise FetchFailed(f"{url} came compressed, which was not asked for.")
        self._check_size(url, int(told.get("Content-Length", "0")))
        content = bytearray()
        for chunk in response.iter_stream():
            content += chunk
            self._check_size(url, len(content))
        return Page(str(url), bytes(content), media_type, told.get_content_charset())

    def _check_size(self, url: httpx.URL, size: int) -> None:
        if size > self.max_bytes:
            raise UrlRefused(f"{url} is larger than {self.max_bytes // 1024**2} MiB.")


def fetch_source(source: Source, fetcher: Fetcher | None) -> Source:
    """The source with what stands at its URL, which is refused where there is no fetcher."""
    url = source.url or source.external_id
    if fetcher is None:
        raise UrlRefused(
            f"{hide_login(url)} is not fetched: that is switched off.",
            hint="Set CONTEXTFORGE_ALLOW_URLS=on, or save the page and give the file.",
        )
    page = fetcher.fetch(url)
    moved = resolve_link(page.url, path="")
    return replace(
        source,
        format=_find_format(page),
        stream=BytesIO(_as_utf8(page)),
        url=moved.target if moved else page.url,
    )


def hide_login(url: str) -> str:
    """The URL as it may be shown: without a user name and password."""
    return _LOGIN.sub(r"\1***@", url, count=1)


def _find_format(page: Page) -> Format:
    """By its content type; of plain text, which many servers say of any, by its name."""
    if page.media_type == "text/plain":
        suffix = PurePosixPath(httpx.URL(page.url).path).suffix.lower()
        return FORMATS.get(suffix, "text")
    return _FORMAT_OF_TYPE[page.media_type]


def _as_utf8(page: Page) -> bytes:
    """The bytes as the readers expect them, where the server alone knows the encoding."""
    if page.charset is None or page.media_type == "application/pdf":
        return page.content
    try:
        page.content.decode()
    except UnicodeDecodeError:
        try:
            return page.content.decode(codecs.lookup(page.charset).name).encode()
        except (LookupError, UnicodeError):  # refused by the reader, with the place
            return page.content
    return page.content
