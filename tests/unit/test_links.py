"""Links of a document: what is written, resolved to a path, a URL or a title."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ingestion.documents import OutLink
from service.ingestion.links import find_wiki_links, resolve_link, resolve_links
from service.ingestion.markdown import read_markdown


def markdown_links(text: str, *, path: str = "guide/start.md") -> list[OutLink]:
    return list(read_markdown(text.encode(), external_id=path).links)


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("install.md", "guide/install.md"),
        ("./install.md#linux", "guide/install.md"),
        ("../api/search.md?raw=1", "api/search.md"),
        ("/index.md", "index.md"),
        ("deep/./er/../page.md", "guide/deep/page.md"),
        ("with%20space.md", "guide/with space.md"),
        ("back\\slash.md", "guide/back/slash.md"),
        ("folder/", "guide/folder"),
    ],
)
def test_a_relative_link_becomes_a_path_from_the_root(reference: str, target: str) -> None:
    assert resolve_link(reference, path="guide/start.md") == OutLink("path", target)


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("https://Example.org/A?b=c#d", "https://example.org/A?b=c"),
        ("HTTP://example.org", "http://example.org"),
        ("//example.org/x", "https://example.org/x"),
    ],
)
def test_a_url_loses_its_fragment_and_the_case_of_its_host(reference: str, target: str) -> None:
    assert resolve_link(reference, path="a.md") == OutLink("url", target)


@pytest.mark.parametrize(
    "reference",
    [
        "#part",
        "",
        "mailto:a@example.org",
        "javascript:alert(1)",
        "data:text/plain,x",
        "tel:123",
        "../../outside.md",
        "http://[broken",
        "http:",
        "..",
        "a%00b.md",
    ],
)
def test_what_is_no_other_document_is_no_link(reference: str) -> None:
    assert resolve_link(reference, path="guide/start.md") is None


@given(st.text(max_size=60), st.sampled_from(["a.md", "b/c.md", ""]))
def test_no_reference_breaks_the_resolver_or_leaves_the_root(reference: str, path: str) -> None:
    link = resolve_link(reference, path=path)
    assert link is None or link.kind == "url" or not link.target.startswith(("/", "../"))


def test_wiki_links_name_titles_without_label_and_anchor() -> None:
    text = "[[Vector  index]], [[BM25|the score]], [[Tenants#Keys|keys]], [[#here]], [[]] [[ ]]"
    assert [link.target for link in find_wiki_links(text)] == ["Vector index", "BM25", "Tenants"]


def test_markdown_links_are_found_once_in_order_and_never_in_code() -> None:
    text = (
        "See [one](one.md), [two][ref], <https://example.org/x>, [one again](one.md#part),\n"
        "[[Wiki Page|label]], ![image](picture.png), <a class='c' href='three.html'>three</a>,\n"
        "[self](start.md#top) and `[code](no.md) [[No]]`.\n\n"
        "```\n[[Not]] [a](not.md)\n```\n\n[ref]: ../two.md\n"
    )
    assert markdown_links(text) == [
        OutLink("path", "guide/one.md"),
        OutLink("path", "two.md"),
        OutLink("url", "https://example.org/x"),
        OutLink("title", "Wiki Page"),
        OutLink("path", "guide/three.html"),
    ]


def test_references_and_wiki_links_of_a_text_come_together() -> None:
    assert resolve_links(["b.html", "#x"], path="a.html", text="and [[Title]]") == (
        OutLink("path", "b.html"),
        OutLink("title", "Title"),
    )
