"""Fetching pages from real servers: where it may go, what it takes, and how long it waits."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.errors import FetchFailed, UrlRefused
from service.ingestion.documents import OutLink
from service.ingestion.fetch import Fetcher, fetch_source
from service.ingestion.gather import gather_groups
from service.ingestion.ingest import Rejection
from service.ingestion.read import Source, find_files, read_document
from tests.web_server import LOOPBACK, Reply, WebServer, run_web_server

MakeFetcher = Callable[..., Fetcher]
PUBLIC = "93.184.216.34"


@pytest.fixture
def server() -> Iterator[WebServer]:
    """A server whose replies are added by the test."""
    with run_web_server({"/": Reply()}) as running:
        yield running


@pytest.fixture
def make_fetcher(server: WebServer) -> MakeFetcher:
    """make_fetcher(names, ...): one that finds these names, and may go to the test's server."""

    def create(names: Mapping[str, Sequence[str]] | None = None, **options: Any) -> Fetcher:
        known = {"docs.test": [LOOPBACK]} if names is None else names

        def resolve(host: str, port: int) -> Sequence[str]:
            if host not in known:
                raise OSError("no such name")
            return known[host]

        given = {"ports": {server.port}, "trusted": {LOOPBACK}, "resolve": resolve, **options}
        return Fetcher(**given)

    return create


def url_of(server: WebServer, path: str = "/", host: str = "docs.test") -> str:
    return f"http://{host}:{server.port}{path}"


# --- what is had ----------------------------------------------------------------------------


def test_a_page_is_fetched_by_its_name_and_says_what_it_is(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    server.replies["/a?b=c"] = Reply(b"<p>Hi</p>", "Text/HTML; charset=UTF-8")

    page = make_fetcher().fetch(url_of(server, "/a?b=c#part"))

    assert (page.content, page.media_type, page.charset) == (b"<p>Hi</p>", "text/html", "utf-8")
    (request,) = server.requests
    assert request["path"] == "/a?b=c"
    assert request["Host"] == f"docs.test:{server.port}"
    assert request["Accept-Encoding"] == "identity"


def test_redirects_are_followed_and_the_page_knows_its_last_url(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    server.replies["/old"] = Reply(status=301, headers={"Location": "/new"})
    server.replies["/new"] = Reply(
        status=307, headers={"Location": url_of(server, "/at/last", host="other.test")}
    )
    server.replies["/at/last"] = Reply(b"here", "text/plain")
    names = {"docs.test": [LOOPBACK], "other.test": [LOOPBACK]}

    page = make_fetcher(names).fetch(url_of(server, "/old"))

    assert (page.url, page.content) == (url_of(server, "/at/last", host="other.test"), b"here")


def test_five_redirects_are_followed_and_a_sixth_is_not(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    for number in range(6):
        server.replies[f"/{number}"] = Reply(status=302, headers={"Location": f"/{number + 1}"})
    server.replies["/6"] = Reply()

    assert make_fetcher().fetch(url_of(server, "/1")).url == url_of(server, "/6")
    with pytest.raises(FetchFailed, match="more than 5 times"):
        make_fetcher().fetch(url_of(server, "/0"))


def test_proxies_of_the_environment_are_not_asked(
    server: WebServer, make_fetcher: MakeFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert make_fetcher().fetch(url_of(server)).media_type == "text/html"


def test_the_next_address_is_tried_where_one_does_not_answer(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    fetcher = make_fetcher({"docs.test": ["127.0.0.2", LOOPBACK]}, trusted={LOOPBACK, "127.0.0.2"})
    assert fetcher.fetch(url_of(server)).media_type == "text/html"


# --- where it may not go --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://docs.test/x", "no web page"),
        ("file:///etc/passwd", "no web page"),
        ("gopher://docs.test/x", "no web page"),
        ("http://", "no web page"),
        ("http:///x", "no web page"),
        ("http://user:secret@docs.test/", "user name"),
        ("http://user@docs.test/", "user name"),
        ("http://docs.test:22/", "port 22"),
        ("https://docs.test:8443/", "port 8443"),
        ("http://docs.test:99999/", "no URL|port"),
        ("http://[::1", "no URL"),
    ],
)
def test_a_url_of_another_kind_is_refused_unasked(url: str, reason: str) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError("looked up")

    with pytest.raises(UrlRefused, match=reason) as caught:
        Fetcher(resolve=resolve).fetch(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"),
        *("0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::]", "[64:ff9b::7f00:1]"),
    ],
)
def test_this_machine_is_refused_in_every_spelling(server: WebServer, host: str) -> None:
    with pytest.raises((UrlRefused, FetchFailed)):
        Fetcher(ports={server.port}).fetch(f"http://{host}:{server.port}/")
    assert server.requests == []


@pytest.mark.parametrize(
    "addresses",
    [[LOOPBACK], [PUBLIC, "10.0.0.7"], ["169.254.169.254"], [PUBLIC, "::ffff:10.0.0.7"]],
)
def test_a_name_with_one_address_that_is_not_public_is_refused(
    server: WebServer, make_fetcher: MakeFetcher, addresses: list[str]
) -> None:
    fetcher = make_fetcher({"docs.test": addresses}, trusted=())
    with pytest.raises(UrlRefused, match=r"docs\.test is at .*, an? .*address"):
        fetcher.fetch(url_of(server))
    assert server.requests == []


def test_a_redirect_to_an_address_that_is_not_public_is_refused(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    names = {"docs.test": [LOOPBACK], "inside.test": ["192.168.0.1"]}
    for target in (
        "http://169.254.169.254/latest/meta-data/",
        "http://inside.test/",
        "//inside.test/",
        "file:///etc/passwd",
        "http://user@docs.test/",
        "http://docs.test:22/",
        "http://[broken",
    ):
        server.replies["/away"] = Reply(status=302, headers={"Location": target})
        fetcher = make_fetcher(names, ports={server.port, 80})
        with pytest.raises((UrlRefused, FetchFailed)):
            fetcher.fetch(url_of(server, "/away"))
    assert {request["path"] for request in server.requests} == {"/away"}


def test_a_name_that_changes_its_address_is_looked_up_once_for_a_hop(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    """As an attacker's name server does: a harmless address first, then one inside."""
    answers = iter([[LOOPBACK], ["10.0.0.7"]])
    fetcher = make_fetcher(resolve=lambda host, port: next(answers))

    assert fetcher.fetch(url_of(server)).media_type == "text/html"
    assert list(answers) == [["10.0.0.7"]]


def test_each_hop_is_looked_up_and_checked_again(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    server.replies["/old"] = Reply(status=302, headers={"Location": "/new"})
    server.replies["/new"] = Reply()
    answers = iter([[LOOPBACK], ["10.0.0.7"]])
    fetcher = make_fetcher(resolve=lambda host, port: next(answers))

    with pytest.raises(UrlRefused, match=r"10\.0\.0\.7, a private address"):
        fetcher.fetch(url_of(server, "/old"))
    assert [request["path"] for request in server.requests] == ["/old"]


# --- what is not taken ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "media_type", ["application/octet-stream", "image/png", "application/zip", "video/mp4", None]
)
def test_a_content_type_that_no_reader_knows_is_refused(
    server: WebServer, make_fetcher: MakeFetcher, media_type: str | None
) -> None:
    server.replies["/x"] = Reply(b"x", media_type)
    with pytest.raises(UrlRefused, match=f"content type {media_type or 'none'}"):
        make_fetcher().fetch(url_of(server, "/x"))


@pytest.mark.parametrize("hides_length", [True, False])
def test_what_is_too_large_is_refused_whether_it_says_so_or_not(
    server: WebServer, make_fetcher: MakeFetcher, hides_length: bool
) -> None:
    server.replies["/large"] = Reply(b"x" * (2 * 1024**2), "text/plain", hides_length=hides_length)
    fetcher = make_fetcher(max_bytes=1024**2)
    with pytest.raises(UrlRefused, match="larger than 1 MiB"):
        fetcher.fetch(url_of(server, "/large"))


def test_what_comes_compressed_unasked_is_refused(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    server.replies["/zip"] = Reply(headers={"Content-Encoding": "gzip"})
    with pytest.raises(FetchFailed, match="compressed"):
        make_fetcher().fetch(url_of(server, "/zip"))


@pytest.mark.parametrize("status", [204, 304, 404, 500, 503])
def test_another_status_is_a_failure(
    server: WebServer, make_fetcher: MakeFetcher, status: int
) -> None:
    server.replies["/x"] = Reply(b"", status=status)
    with pytest.raises(FetchFailed, match=f"status {status}"):
        make_fetcher().fetch(url_of(server, "/x"))


def test_a_name_that_is_not_found_and_a_port_that_is_closed_are_failures(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    with pytest.raises(FetchFailed, match=r"nowhere\.test was not found"):
        make_fetcher().fetch(url_of(server, host="nowhere.test"))
    with pytest.raises(FetchFailed, match="cannot be read"):
        make_fetcher(ports={1}).fetch("http://docs.test:1/")


# --- how long it waits ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [Reply(b"x" * 10_000, body_pause=0.02), Reply(head_pause=0.02)], ids=["body", "head"]
)
def test_a_server_that_sends_byte_by_byte_is_left_at_the_deadline(
    server: WebServer, make_fetcher: MakeFetcher, reply: Reply
) -> None:
    server.replies["/slow"] = reply
    started = time.monotonic()
    with pytest.raises(FetchFailed, match="in time"):
        make_fetcher(max_seconds=0.4).fetch(url_of(server, "/slow"))
    assert time.monotonic() - started < 2


def test_a_name_server_that_does_not_answer_is_left_at_the_deadline(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    def resolve(host: str, port: int) -> Sequence[str]:
        time.sleep(3)
        return [LOOPBACK]

    started = time.monotonic()
    with pytest.raises(FetchFailed, match="not found in time"):
        make_fetcher(resolve=resolve, max_seconds=0.2).fetch(url_of(server))
    assert time.monotonic() - started < 2


# --- TLS ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for docs.test, in one file."""
    place = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=docs.test", "-addext", "subjectAltName=DNS:docs.test"]
    files = ["-keyout", str(place), "-out", str(place.with_suffix(".crt"))]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    place.write_text(place.read_text() + place.with_suffix(".crt").read_text())
    return place


def test_a_certificate_is_checked_for_the_name_and_not_for_the_address(
    certificate: Path,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with run_web_server({"/": Reply()}, ssl_context=context) as server:
        options: dict[str, Any] = {
            "ports": {server.port},
            "trusted": {LOOPBACK},
            "resolve": lambda host, port: [LOOPBACK],
        }
        knowing = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
        fetcher = Fetcher(**options, ssl_context=knowing)

        assert fetcher.fetch(f"https://docs.test:{server.port}/").media_type == "text/html"
        with pytest.raises(FetchFailed, match="certificate"):
            fetcher.fetch(f"https://other.test:{server.port}/")
        with pytest.raises(FetchFailed, match="certificate"):
            Fetcher(**options).fetch(f"https://docs.test:{server.port}/")


# --- as sources -----------------------------------------------------------------------------


def fetch_document_source(url: str, fetcher: Fetcher) -> Source:
    (source,) = find_files([url])
    return fetch_source(source, fetcher)


def test_a_page_is_known_by_the_url_asked_for_and_its_links_start_where_it_stands(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    server.replies["/old"] = Reply(status=301, headers={"Location": "/guide/new.html"})
    body = b"""<html><head><link rel=canonical href="https://elsewhere.test/"></head>
        <body><h1>New</h1><p>See <a href="b.html#x">b</a>, <a href="/c">c</a>, <a href="#y">y</a>
        and <a href="new.html">this</a>.</p></body></html>"""
    server.replies["/guide/new.html"] = Reply(body)

    document = read_document(fetch_document_source(url_of(server, "/old"), make_fetcher()))

    assert document.external_id == url_of(server, "/old")
    assert document.url == url_of(server, "/guide/new.html")
    assert document.title == "New"
    assert document.links == (
        OutLink("url", url_of(server, "/guide/b.html")),
        OutLink("url", url_of(server, "/c")),
    )


@pytest.mark.parametrize(
    ("path", "media_type", "known"),
    [
        ("/a", "text/html", "html"),
        ("/a.html", "application/xhtml+xml", "html"),
        ("/a", "text/markdown", "markdown"),
        ("/a.md", "text/plain; charset=utf-8", "markdown"),
        ("/a.rst", "text/plain", "restructured"),
        ("/a", "text/plain", "text"),
        ("/a", "application/pdf", "pdf"),
        ("/a", "application/x-ndjson", "jsonl"),
    ],
)
def test_the_format_is_what_the_server_says_it_is(
    *, server: WebServer, make_fetcher: MakeFetcher, path: str, media_type: str, known: str
) -> None:
    server.replies[path] = Reply(b"x", media_type)
    assert fetch_document_source(url_of(server, path), make_fetcher()).format == known


def test_a_page_is_read_in_the_encoding_that_only_its_server_states(
    server: WebServer, make_fetcher: MakeFetcher
) -> None:
    body = "<h1>Café</h1><p>Grüße aus dem Süden.</p>".encode("latin-1")
    server.replies["/a"] = Reply(body, "text/html; charset=iso-8859-1")
    assert (
        read_document(fetch_document_source(url_of(server, "/a"), make_fetcher())).title == "Café"
    )


def test_a_url_that_is_refused_is_a_rejection_and_the_rest_goes_on(
    server: WebServer, make_fetcher: MakeFetcher, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# File\n\nText.")
    paths = ["http://inside.test/", "ftp://x.test/y", url_of(server), str(tmp_path / "a.md")]
    fetcher = make_fetcher(
        {"docs.test": [LOOPBACK], "inside.test": ["10.0.0.7"]}, ports={80, server.port}
    )

    found = list(gather_groups(find_files(paths), size=400, overlap=0.1, fetcher=fetcher))

    refused = [each for each in found if isinstance(each, Rejection)]
    assert [each.source for each in refused] == paths[:2]
    assert "10.0.0.7, a private address" in refused[0].reason
    assert [each.source for each in found if not isinstance(each, Rejection)] == [
        *(url_of(server), "a.md")
    ]


def test_without_a_fetcher_no_url_is_asked(server: WebServer) -> None:
    (found,) = gather_groups(find_files([url_of(server)]), size=400, overlap=0.1)
    assert isinstance(found, Rejection)
    assert "CONTEXTFORGE_ALLOW_URLS" in found.reason
    assert server.requests == []


def test_a_rejection_shows_no_password_of_its_url(make_fetcher: MakeFetcher) -> None:
    sources = find_files(["http://user:secret@docs.test/page"])
    for fetcher in (make_fetcher(), None):
        (found,) = gather_groups(sources, size=400, overlap=0.1, fetcher=fetcher)
        assert isinstance(found, Rejection)
        assert found.source == "http://***@docs.test/page"
        assert "secret" not in found.reason
